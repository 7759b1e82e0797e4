package redislock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// pingInterval is how long the subscription may be quiet before it is pinged,
// and how long it is kept without waiters.
const pingInterval = 3 * time.Second

// wakes hears the releases for all waiters of one Locker, on one connection that
// is there while somebody waits. It only makes waiting short: a waiter that is
// never woken polls.
type wakes struct {
	locker *Locker

	mu        sync.Mutex
	topics    map[string]topic // by channel
	confirmed map[string]bool  // channels that the server sends us
	changed   chan struct{}    // topics have come or gone
	running   bool
	deaf      bool // the server does not allow the subscription
}

// topic is the waiters of one lock, by id.
type topic map[string]*waiter

// waiter is rung with 0 when it is its turn, or the time after which to look.
type waiter struct {
	channel, id string
	ring        chan time.Duration
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

// join is called after the server has noted the waiter. If the subscription
// exists already the waiter is rung at once, else when it does: a release in
// between has not been heard.
func (s *wakes) join(channel, id string) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics == nil {
		s.topics = make(map[string]topic)
		s.confirmed = make(map[string]bool)
		s.changed = make(chan struct{}, 1)
	}
	w := &waiter{channel: channel, id: id, ring: make(chan time.Duration, 1)}
	if s.topics[channel] == nil {
		s.topics[channel] = make(topic)
		s.poke()
	}
	s.topics[channel][id] = w
	if s.confirmed[channel] {
		w.rings(0)
	}
	if !s.running && !s.deaf {
		s.running = s.locker.group.Go(s.run)
	}
	return w
}

func (s *wakes) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.topics[w.channel], w.id)
	if len(s.topics[w.channel]) == 0 {
		delete(s.topics, w.channel)
		s.poke()
	}
}

func (s *wakes) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
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
	clear(s.confirmed)
	if redis.HasErrorPrefix(err, "NOPERM") {
		s.deaf = true
		s.locker.log.Warn("redislock: waiters cannot hear of a release and poll instead", "reason", err)
	}
	if s.deaf || len(s.topics) == 0 || s.locker.ctx.Err() != nil {
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

// write subscribes to what is waited for, and pings.
func (s *wakes) write(ctx context.Context, subscription *redis.PubSub, replies <-chan struct{}) error {
	now := make(map[string]bool)
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	pinged := false
	for {
		come, gone := s.difference(now)
		if len(come) > 0 {
			if err := subscription.Subscribe(ctx, come...); err != nil {
				return err
			}
		}
		if len(gone) > 0 {
			if err := subscription.Unsubscribe(ctx, gone...); err != nil {
				return err
			}
		}
		select {
		case <-s.changed:
		case <-replies:
			pinged = false
		case <-ticker.C:
			if len(now) == 0 {
				return nil
			}
			if pinged {
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

// difference brings now up to date.
func (s *wakes) difference(now map[string]bool) (come, gone []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel := range s.topics {
		if !now[channel] {
			now[channel] = true
			come = append(come, channel)
		}
	}
	for channel := range now {
		if s.topics[channel] == nil {
			delete(now, channel)
			delete(s.confirmed, channel)
			gone = append(gone, channel)
		}
	}
	return come, gone
}

func (s *wakes) handle(message any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := message.(type) {
	case *redis.Subscription:
		s.confirmed[m.Channel] = m.Kind == "subscribe"
		if s.confirmed[m.Channel] {
			for _, w := range s.topics[m.Channel] {
				w.rings(0)
			}
		}
	case *redis.Message:
		for i, id := range strings.Fields(m.Payload) {
			if w := s.topics[m.Channel][id]; w != nil {
				w.rings(time.Duration(i) * claimTime)
			}
		}
	}
}
