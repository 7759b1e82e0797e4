package redislock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// pingInterval is how long the subscription may be quiet before it is pinged,
// and how long it is kept without waiters.
const pingInterval = 3 * time.Second

// wakes hears the messages for all waiters of one Locker, on one connection that
// is there while somebody waits. The channel is the Locker's own, so that a
// release wakes nobody in vain. It only makes waiting short: a waiter that is
// never woken polls.
type wakes struct {
	locker *Locker

	mu        sync.Mutex
	waiters   map[string]*waiter // by id
	confirmed bool               // the server sends us messages
	used      bool               // somebody has waited since the last ping
	running   bool
	deaf      bool // the server does not allow the subscription
}

// waiter is rung with 0 when it is its turn, or the time after which to look.
type waiter struct {
	id   string
	ring chan time.Duration
}

// rings hands on the newest wish; 0 is never lost to another.
func (w *waiter) rings(d time.Duration) {
	select {
	case old := <-w.ring:
		d = min(d, old)
	default:
	}
	w.ring <- d // there is room: all senders hold wakes.mu
}

// early is join before the server knows the waiter, or nil without a
// subscription. No message to this waiter can be missed, so it is not rung.
func (s *wakes) early(id string) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.confirmed {
		return nil
	}
	return s.add(id)
}

// join is called after the server has noted the waiter. It is rung when the
// subscription exists: a message before that has not been heard.
func (s *wakes) join(id string) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.add(id)
	if s.confirmed {
		w.rings(0)
	}
	if !s.running && !s.deaf {
		s.running = s.locker.group.Go(s.run)
	}
	return w
}

func (s *wakes) add(id string) *waiter {
	if s.waiters == nil {
		s.waiters = make(map[string]*waiter)
	}
	w := &waiter{id: id, ring: make(chan time.Duration, 1)}
	s.waiters[id] = w
	s.used = true
	return w
}

// leave undoes early or join; nil is nobody.
func (s *wakes) leave(w *waiter) {
	if w == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiters, w.id)
}

// hears reports whether messages come.
func (s *wakes) hears() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.confirmed
}

// run keeps a subscription until nobody waits.
func (s *wakes) run() {
	l := s.locker
	pause := l.options.retryMin()
	for {
		heard, err := s.session()
		if s.rest(err) {
			return
		}
		if heard {
			pause = l.options.retryMin()
		}
		l.log.Debug("redislock: the subscription was lost; waiters poll until it is back", "error", err)
		timer := time.NewTimer(jitter(pause))
		select {
		case <-timer.C:
		case <-l.ctx.Done():
		}
		timer.Stop()
		pause = min(2*pause, pingInterval)
	}
}

// rest reports whether no further session is wanted.
func (s *wakes) rest(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = false
	if redis.HasErrorPrefix(err, "NOPERM") {
		s.deaf = true
		s.locker.log.Warn("redislock: waiters cannot hear of a release and poll instead", "reason", err)
	}
	if s.deaf || len(s.waiters) == 0 || s.locker.ctx.Err() != nil {
		s.running = false
	}
	return !s.running
}

// session is one connection. It tells whether it heard anything.
func (s *wakes) session() (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(s.locker.ctx)
	subscription := s.locker.client.Subscribe(ctx)
	var both sync.WaitGroup
	defer func() {
		cancel(nil)
		both.Wait()
	}()
	both.Go(func() {
		<-ctx.Done()
		_ = subscription.Close() // ends the read below
	})
	replies := make(chan struct{}, 1)
	both.Go(func() { cancel(s.write(ctx, subscription, replies)) })
	for {
		message, err := subscription.Receive(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return heard, err
		}
		heard = true
		select {
		case replies <- struct{}{}:
		default:
		}
		s.handle(message)
	}
}

// write subscribes, and pings until nobody waits.
func (s *wakes) write(ctx context.Context, subscription *redis.PubSub, replies <-chan struct{}) error {
	if err := subscription.Subscribe(ctx, s.locker.channels+s.locker.self); err != nil {
		return err
	}
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	pinged := false
	for {
		select {
		case <-replies:
			pinged = false
		case <-ticker.C:
			switch {
			case s.idle():
				return nil
			case pinged:
				return errors.New("no answer to a ping")
			}
			if err := subscription.Ping(ctx); err != nil {
				return err
			}
			pinged = true
		case <-ctx.Done():
			return nil
		}
	}
}

// idle reports whether nobody waits or has waited since it was last asked. Then
// messages do not count any more: the connection is about to be closed.
func (s *wakes) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used || len(s.waiters) > 0
	s.used = false
	s.confirmed = s.confirmed && used
	return !used
}

func (s *wakes) handle(message any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := message.(type) {
	case *redis.Subscription:
		s.confirmed = m.Kind == "subscribe"
		if s.confirmed {
			for _, w := range s.waiters {
				w.rings(0)
			}
		}
	case *redis.Message:
		id, delay, _ := strings.Cut(m.Payload, " ")
		if w := s.waiters[id]; w != nil {
			ms, _ := strconv.Atoi(delay) // none: it is this waiter's turn
			w.rings(time.Duration(ms) * time.Millisecond)
		}
	}
}
