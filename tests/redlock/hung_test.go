package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// The lease time is ten minutes, and a test waits for half a minute: that the calls
// return at all shows that they do not wait for the server that hangs.
func TestServerThatHangsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	l := s.redlock(t, &redislock.RedlockOptions{Prefix: prefix, TTL: 10 * time.Minute, NodeTimeout: 3 * time.Second})
	held := bounded.Acquire(t, l, "held")
	s.servers[0].Pause(t)
	for range 5 {
		lease := bounded.Acquire(t, l, "a")
		if err := l.Verify(bounded.Context(t), "a", lease.Token()); err != nil {
			t.Errorf("Verify: %v", err)
		}
		bounded.Release(t, lease)
	}
	lease := bounded.Acquire(t, l, "a")
	if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("TryAcquire of a held lock: %v, want ErrHeld", err)
	}
	bounded.Release(t, lease)
	bounded.Release(t, held)

	// Whatever the server finds in its buffers, in whatever order.
	s.servers[0].Resume(t)
	bounded.Eventually(t, "the lock that it had is freed", func() bool { return s.get(t, 0, keyOf(prefix, "held")+"lock") == "" })
	bounded.Eventually(t, "late copies of the requests are shut out", func() bool {
		found, err := s.clients[0].Keys(t.Context(), k+"gone:*").Result()
		return err == nil && len(found) > 0
	})
	bounded.Eventually(t, "the server has the lock free", func() bool { return s.get(t, 0, k+"lock") == "" })
	closeNow(t, l)
	if got := s.get(t, 0, k+"lock"); got != "" {
		t.Errorf("after Close the server that hung has the lock of %q", got)
	}
}

func closeNow(t *testing.T, l locks.Locker) {
	t.Helper()
	bounded.Close(t, l)
}

func TestRenewalOutlastsAServerThatHangs(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	l := s.redlock(t, &redislock.RedlockOptions{Prefix: space(), TTL: 8 * time.Second, NodeTimeout: 2 * time.Second})
	lease := bounded.Acquire(t, l, "a")
	s.servers[0].Pause(t)
	for range 4 { // longer than the lease time
		before := lease.Deadline()
		bounded.Eventually(t, "a renewal", func() bool { return lease.Deadline().After(before) || lease.Context().Err() != nil })
		if err := lease.Context().Err(); err != nil {
			t.Fatalf("the lease ended: %v", context.Cause(lease.Context()))
		}
	}
	bounded.Release(t, lease)
	s.servers[0].Resume(t)
}

func TestCloseDoesNotWaitForAServerThatHangs(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	l := s.redlock(t, &redislock.RedlockOptions{Prefix: space(), TTL: 10 * time.Minute, NodeTimeout: 3 * time.Second})
	bounded.Acquire(t, l, "a")
	s.servers[0].Pause(t)
	bounded.Release(t, bounded.Acquire(t, l, "b"))
	bounded.Close(t, l)
	s.servers[0].Resume(t)
}

func TestNoMajorityIsUnreachable(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, true)
	l := s.redlock(t, &redislock.RedlockOptions{Prefix: space(), TTL: time.Minute, NodeTimeout: 3 * time.Second})
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	s.servers[0].Kill(t)
	s.servers[1].Pause(t)
	_, err := l.TryAcquire(bounded.Context(t), "a")
	if !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("TryAcquire with one server: %v, want ErrUnreachable", err)
	} else if text := err.Error(); strings.Contains(text, "\n") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("TryAcquire: %q, want one line, and no deadline of the caller's", text)
	}
	done := bounded.Acquiring(bounded.Context(t), l, "a")
	s.servers[0].Start(t)
	bounded.Release(t, bounded.Granted(t, "Acquire when a majority is back", done))
	s.servers[1].Resume(t)
}

// A server that hangs is sent a few requests and no more, however many clients ask.
func TestServerThatHangsIsSentFewRequests(t *testing.T) {
	t.Parallel()
	const names = 200
	s := startSet(t, 3, false)
	prefix := space()
	l, w := s.wiredRedlock(t, &redislock.RedlockOptions{Prefix: prefix, TTL: time.Minute, NodeTimeout: 2 * time.Second})
	warm(t, s, prefix, l, w)
	s.servers[0].Pause(t)
	// The first of them are sent before it is known that it hangs.
	bounded.Eventually(t, fmt.Sprintf("%d locks are taken and given back with fewer requests to it", names), func() bool {
		w.reset()
		var all sync.WaitGroup
		for i := range names {
			all.Go(func() {
				lease, err := l.Acquire(t.Context(), fmt.Sprint("a", i))
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return len(w.counters[0].Requests()) < names/2
	})
	s.servers[0].Resume(t)
}
