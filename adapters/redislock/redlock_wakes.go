package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// redlockWakes hears the releases for all waiters of one Redlock, on one
// connection per server, from the first time that somebody waits until Close. It
// only makes waiting short: a waiter that is never woken polls.
type redlockWakes struct {
	redlock *Redlock

	mu      sync.Mutex
	waiters map[string]*redlockWaiter
	running bool
}

// redlockWaiter is rung with 0 when it is its turn, or the time after which to
// look.
type redlockWaiter struct {
	wakes *redlockWakes
	id    string // TAG/NUMBER; TAG ends the name of the channel
	ring  chan time.Duration
	told  map[*node]bool // the servers that say that it is its turn
}

const (
	// lookTime is how long the first waiter may take after a release has woken
	// it before the second one looks.
	lookTime = 50 * time.Millisecond

	// hearPing is how long a subscription may be quiet before it is pinged.
	hearPing = 3 * time.Second
)

// stragglerTime is how long a waiter that a majority has told waits for the other
// servers: where it asks before the release it would be refused.
const stragglerTime = time.Millisecond

// join makes a waiter. It is rung when servers can tell it of releases, because
// only from then on they note it.
func (s *redlockWakes) join() *redlockWaiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.redlock
	if s.waiters == nil {
		s.waiters = make(map[string]*redlockWaiter)
	}
	w := &redlockWaiter{
		wakes: s,
		id:    fmt.Sprintf("%s/%d", r.tag, r.waiters.Add(1)),
		ring:  make(chan time.Duration, 1),
		told:  make(map[*node]bool),
	}
	s.waiters[w.id] = w
	if !s.running {
		s.running = true
		for _, n := range r.nodes {
			r.group.Go(func() { s.hear(n) })
		}
	}
	for _, n := range r.nodes {
		if n.hears.Load() {
			w.rings(0)
		}
	}
	return w
}

func (s *redlockWakes) leave(w *redlockWaiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiters, w.id)
}

// asks forgets the messages that came before a round.
func (w *redlockWaiter) asks() {
	w.wakes.mu.Lock()
	defer w.wakes.mu.Unlock()
	clear(w.told)
	select {
	case <-w.ring:
	default:
	}
}

// rings hands on the earliest wish. wakes.mu is held.
func (w *redlockWaiter) rings(d time.Duration) {
	select {
	case old := <-w.ring:
		d = min(d, old)
	default:
	}
	w.ring <- d // there is room: all senders hold wakes.mu
}

// hear keeps a subscription on one server until Close.
func (s *redlockWakes) hear(n *node) {
	r := s.redlock
	pause := r.options.retryMin()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for r.ctx.Err() == nil {
		err := s.session(n)
		if n.hears.Swap(false) {
			pause = r.options.retryMin()
		}
		if redis.HasErrorPrefix(err, "NOPERM") {
			r.log.Warn("redislock: waiters cannot hear of a release on a server and poll instead", "server", n.number(), "reason", err)
			return
		}
		timer.Reset(jitter(pause))
		select {
		case <-timer.C:
		case <-r.ctx.Done():
		}
		pause = min(2*pause, hearPing)
	}
}

// session is one connection. It ends with an error or with Close.
func (s *redlockWakes) session(n *node) error {
	r := s.redlock
	subscription := n.client.Subscribe(r.ctx)
	closed := make(chan struct{})
	stop := context.AfterFunc(r.ctx, func() {
		defer close(closed)
		_ = subscription.Close() // ends the read below
	})
	defer func() {
		if stop() {
			_ = subscription.Close()
			return
		}
		<-closed
	}()
	if err := subscription.Subscribe(r.ctx, r.wakeup()+r.tag); err != nil {
		return err
	}
	pinged := false
	for {
		message, err := subscription.ReceiveTimeout(r.ctx, hearPing)
		var timeout net.Error
		switch {
		case err == nil:
			pinged = false
			s.handle(n, message)
		case r.ctx.Err() == nil && errors.As(err, &timeout) && timeout.Timeout() && !pinged:
			if err := subscription.Ping(r.ctx); err != nil {
				return err
			}
			pinged = true
		default:
			return err
		}
	}
}

func (s *redlockWakes) handle(n *node, message any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := message.(type) {
	case *redis.Subscription:
		n.hears.Store(m.Kind == "subscribe")
		for _, w := range s.waiters {
			w.rings(0)
		}
	case *redis.Message:
		id, later, _ := strings.Cut(m.Payload, " ")
		w := s.waiters[id]
		if w == nil {
			return
		}
		if later != "" {
			w.rings(lookTime)
			return
		}
		w.told[n] = true
		switch len(w.told) {
		case len(s.redlock.nodes):
			w.rings(0)
		case s.redlock.majority():
			w.rings(stragglerTime)
		case 1:
			w.rings(lookTime)
		}
	}
}
