package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// call is one call of the client library, which takes no context, in a
// goroutine of its own. It ends at the latest when the session does.
type call struct {
	wire *wire // the connection at its start
	done chan struct{}
	err  error // valid when done is closed
}

// start runs f. What f writes may be read when the call is done.
func (s *session) start(ctx context.Context, f func(*zk.Conn) error) (*call, error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, errAway
	case <-s.deadCh:
		return nil, s.dead
	}
	c := &call{wire: s.connection(), done: make(chan struct{})}
	if !s.goWork(func() {
		c.err = f(s.conn)
		<-s.slots
		close(c.done)
	}) {
		<-s.slots
		return nil, errClosing
	}
	return c, nil
}

// goWork runs f in a goroutine that shutdown waits for.
func (s *session) goWork(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	if s.resting > 0 {
		s.resting--
		s.next <- f
	} else {
		s.work.Go(func() { s.works(f) })
	}
	return true
}

// maxResting bounds the goroutines that a session keeps for its next calls.
const maxResting = 4

// works runs f and what comes after it.
func (s *session) works(f func()) {
	for f != nil {
		f()
		s.mu.Lock()
		rest := !s.stopping && s.resting < maxResting
		if rest {
			s.resting++
		}
		s.mu.Unlock()
		if !rest {
			return
		}
		f = <-s.next // nil when the session ends
	}
}

// wait waits for the call; its error is errAway if ctx ends first.
func (c *call) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return errAway
	}
}

// do runs f when the session can be used. If there is no answer within the
// request timeout it breaks the connection, which ends the call. If ctx ends
// first the error is over errAway, and the call may still be under way.
func (s *session) do(ctx context.Context, f func(*zk.Conn) error) error {
	return s.within(ctx, s.config.opts.requestTimeout(), f)
}

// within is do with another bound for the request.
func (s *session) within(ctx context.Context, patience time.Duration, f func(*zk.Conn) error) error {
	if err := s.await(ctx); err != nil {
		return err
	}
	c, err := s.start(ctx, f)
	if err != nil {
		return err
	}
	return c.finish(ctx, patience)
}

func (s *session) finish(ctx context.Context, c *call) error {
	return c.finish(ctx, s.config.opts.requestTimeout())
}

// finish waits for the call; after patience it breaks the connection.
func (c *call) finish(ctx context.Context, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.wait(bounded)
	if errors.Is(err, errAway) && ctx.Err() == nil {
		c.wire.Close()
		err = c.wait(ctx)
	}
	return err
}

// children reads a lock node and its children.
func (s *session) children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	var names []string
	var stat *zk.Stat
	err := s.do(ctx, func(c *zk.Conn) (err error) {
		names, stat, err = c.Children(path)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return names, stat, nil
}

// syncedChildren is children, at least as new as the call. It returns no names
// for a node that is not there.
func (s *session) syncedChildren(ctx context.Context, path string) ([]string, error) {
	var names []string
	err := s.do(ctx, func(c *zk.Conn) (err error) {
		if _, err = c.Sync(path); err == nil {
			names, _, err = c.Children(path)
		}
		return err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return names, nil
}

// remove deletes a node; one that is not there is removed.
func (s *session) remove(ctx context.Context, path string) error {
	err := s.do(ctx, func(c *zk.Conn) error { return c.Delete(path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// check asks the leader whether the nodes are there. It is a transaction that
// changes nothing, so that no watch of a waiter fires. It returns the index of
// the first that is missing, or -1.
func (s *session) check(ctx context.Context, paths []string) (missing int, err error) {
	var answers []zk.MultiResponse
	err = s.within(ctx, s.negotiated()/4, func(c *zk.Conn) (err error) {
		ops := make([]any, len(paths))
		for i, path := range paths {
			ops[i] = &zk.CheckVersionRequest{Path: path, Version: -1}
		}
		answers, err = c.Multi(ops...)
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		for i, answer := range answers {
			if errors.Is(answer.Error, zk.ErrNoNode) {
				return i, nil
			}
		}
	}
	return -1, err
}

// watched is a watch on a node. Its channel gets an event, and is then closed,
// when the node changes or goes, or when the session ends. All waiters of the
// session that watch the node share it, because the library cannot take a watch
// back.
type watched struct {
	fired <-chan zk.Event

	// Guarded by session.mu.
	waiting int
	left    bool // by its last waiter before it fired; a goroutine forgets it
}

// watch begins to watch a node; the caller must give the watch to unwatch. It
// returns nil if the node is not there. It reads the node to set the watch: a
// watch set by exists would stay for ever on a node that is gone.
func (s *session) watch(ctx context.Context, path string) (*watched, error) {
	s.mu.Lock()
	w := s.watches[path]
	if w != nil {
		w.waiting++
	}
	s.mu.Unlock()
	if w != nil {
		return w, nil
	}
	var fired <-chan zk.Event
	err := s.do(ctx, func(c *zk.Conn) (err error) {
		_, _, fired, err = c.GetW(path)
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w = &watched{fired: fired, waiting: 1}
	s.mu.Lock()
	s.watches[path] = w
	s.mu.Unlock()
	return w, nil
}

// unwatch ends a waiter's part in a watch. A watch that has not fired stays, for
// whoever comes next.
func (s *session) unwatch(path string, w *watched, fired bool) {
	s.mu.Lock()
	w.waiting--
	left := w.waiting == 0 && !fired && !w.left
	w.left = w.left || left
	s.mu.Unlock()
	switch {
	case fired:
		s.forget(path, w)
	case left:
		s.goWork(func() {
			<-w.fired
			s.forget(path, w)
		})
	}
}

func (s *session) forget(path string, w *watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[path] == w {
		delete(s.watches, path)
	}
}
