package redlock_test

import (
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// rarePolls are options under which a waiter that is not woken waits longer than a
// test does.
func rarePolls(prefix string) *redislock.RedlockOptions {
	o := patient(prefix)
	o.PollInterval = 4 * time.Minute
	return o
}

func TestReleaseWakesAWaiter(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	holder, waiter := s.redlock(t, rarePolls(prefix)), s.redlock(t, rarePolls(prefix))
	for range 3 {
		lease := bounded.Acquire(t, holder, "a")
		done := bounded.Queue(t, waiter, "a", func() bool { return s.entries(t, keyOf(prefix, "a")) == 2 })
		bounded.Eventually(t, "all servers know the waiter", func() bool { return s.queued(t, prefix) })
		bounded.Release(t, lease)
		bounded.Release(t, bounded.Granted(t, "the waiter", done))
		bounded.Eventually(t, "nothing is left", func() bool { return s.entries(t, keyOf(prefix, "a")) == 0 })
	}
}

// queued is whether a waiter is known everywhere.
func (s *set) queued(t *testing.T, prefix string) bool {
	t.Helper()
	return s.all(func(i int) bool { return s.clients[i].ZCard(t.Context(), keyOf(prefix, "a")+"queue").Val() > 0 })
}

// A waiter whose client has gone without a word is passed over at once, because no
// message reaches it.
func TestWaiterThatHasGoneIsPassedOver(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	lease := bounded.Acquire(t, s.redlock(t, rarePolls(prefix)), "a")
	for _, client := range s.clients {
		client.ZAdd(t.Context(), keyOf(prefix, "a")+"queue", zOf("GONE/1", 1), zOf("GONE/2", 2))
	}
	waiter := s.redlock(t, rarePolls(prefix))
	done := bounded.Queue(t, waiter, "a", func() bool { return s.entries(t, keyOf(prefix, "a")) == 4 })
	bounded.Eventually(t, "all servers know the waiter", func() bool {
		return s.all(func(i int) bool { return s.clients[i].ZCard(t.Context(), keyOf(prefix, "a")+"queue").Val() == 3 })
	})
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the waiter that is there", done))
}

// A server that hangs does not keep a waiter from being woken.
func TestMajorityWakesAWaiter(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	o := rarePolls(prefix)
	o.NodeTimeout = 3 * time.Second
	holder, waiter := s.redlock(t, o), s.redlock(t, o)
	lease := bounded.Acquire(t, holder, "a")
	done := bounded.Queue(t, waiter, "a", func() bool { return s.queued(t, prefix) })
	s.servers[0].Pause(t)
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the waiter", done))
	s.servers[0].Resume(t)
}

// Without messages waiters poll.
func TestWaitersPollWhenMessagesAreLost(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	o := patient(prefix)
	o.PollInterval = 100 * time.Millisecond
	lease := bounded.Acquire(t, s.redlock(t, o), "a")
	done := bounded.Queue(t, s.redlock(t, o), "a", func() bool { return s.queued(t, prefix) })
	for _, client := range s.clients { // a release whose message nobody got
		client.Del(t.Context(), keyOf(prefix, "a")+"lock")
	}
	bounded.Release(t, bounded.Granted(t, "the waiter", done))
	_ = lease.Release(t.Context())
}
