package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// rarePolls are options with which a test that relied on polling, or on the end
// of a claim time, would fail.
func rarePolls(prefix string) *redislock.Options {
	return &redislock.Options{Prefix: prefix, TTL: 2 * time.Minute, PollInterval: 2 * time.Minute, ClaimTime: time.Minute}
}

func TestUncontendedAcquireIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	counter := proxy.CountRedis(t, servers.SharedRedis(t))
	l := newLocker(t, newClient(t, counter.Addr()), &redislock.Options{Prefix: space(), TTL: time.Minute})
	bounded.Release(t, bounded.Acquire(t, l, "first")) // asks for the version, loads the scripts

	for _, name := range []string{"a", "b", "first"} {
		counter.Reset()
		lease := bounded.Acquire(t, l, name)
		if got := counter.Requests(); counter.RoundTrips() != 1 || len(got) != 1 {
			t.Errorf("Acquire %s: %d round trips, requests %v; want one", name, counter.RoundTrips(), got)
		}
		counter.Reset()
		bounded.Release(t, lease)
		if got := counter.Requests(); counter.RoundTrips() != 1 || len(got) != 1 {
			t.Errorf("Release %s: %d round trips, requests %v; want one", name, counter.RoundTrips(), got)
		}
	}
}

// Waiters of one Locker share a connection, and one that joins an existing
// subscription misses no release.
func TestWaitersOfOneLockerAreAllServed(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, rarePolls(prefix))
	const n = 20
	lease := bounded.Acquire(t, l, "a")
	all := make(chan error, n)
	for range n {
		go func() {
			next, err := l.Acquire(bounded.Context(t), "a")
			if err == nil {
				err = next.Release(t.Context())
			}
			all <- err
		}()
	}
	bounded.Eventually(t, "all wait", func() bool { return waiters(t, client, key(prefix, "a")) == n })
	bounded.Eventually(t, "one subscription", func() bool { return listening(t, client, prefix) == 1 })
	bounded.Release(t, lease)
	deadline := time.After(bounded.Patience)
	for i := range n {
		select {
		case err := <-all:
			if err != nil {
				t.Error(err)
			}
		case <-deadline:
			t.Fatalf("%d of %d waiters were served", i, n)
		}
	}
}

func TestLostMessageIsCoveredByPolling(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	o := &redislock.Options{Prefix: prefix, TTL: time.Minute, PollInterval: 50 * time.Millisecond}
	lease := bounded.Acquire(t, newLocker(t, client, o), "a")
	done := bounded.Acquiring(bounded.Context(t), newLocker(t, client, o), "a")
	bounded.Eventually(t, "it waits", func() bool { return waiters(t, client, key(prefix, "a")) == 1 })
	client.Del(t.Context(), key(prefix, "a")+"lock") // by hand: no message
	bounded.Release(t, bounded.Granted(t, "the waiter", done))
	if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
		t.Errorf("Release of the deleted lock: %v, want ErrLost", err)
	}
}

func TestExpiredHolderIsFollowedWithoutPollInterval(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	// A holder that crashed: nobody renews, nobody releases.
	client.Set(t.Context(), key(prefix, "a")+"lock", "1 crashed", 300*time.Millisecond)
	lease := bounded.Granted(t, "the waiter", bounded.Acquiring(bounded.Context(t), newLocker(t, client, rarePolls(prefix)), "a"))
	bounded.Release(t, lease)
}

func TestForgottenWaitersLeaveTheServer(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, rarePolls(prefix))
	k, past := key(prefix, "a"), float64(time.Now().Add(-time.Second).UnixMilli())
	client.ZAdd(t.Context(), k+"queue", redis.Z{Score: 1, Member: "dead"})
	client.ZAdd(t.Context(), k+"alive", redis.Z{Score: past, Member: "dead"})
	lease, err := l.TryAcquire(bounded.Context(t), "a")
	if err != nil {
		t.Fatalf("TryAcquire behind a forgotten waiter: %v, want a lease", err)
	}
	bounded.Release(t, lease)
	if n := waiters(t, client, k); n != 0 {
		t.Errorf("%d waiters are left, want none", n)
	}
}

func TestTryAcquireDoesNotOvertakeAWaiter(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, rarePolls(prefix))
	k, far := key(prefix, "a"), float64(time.Now().Add(time.Hour).UnixMilli())
	client.ZAdd(t.Context(), k+"queue", redis.Z{Score: 1, Member: "alive"})
	client.ZAdd(t.Context(), k+"alive", redis.Z{Score: far, Member: "alive"})
	if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("TryAcquire of a free lock with a waiter: %v, want ErrHeld", err)
	}
}

func TestCancelledWaiterLeavesNothing(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, rarePolls(prefix))
	lease := bounded.Acquire(t, l, "a")
	reason := errors.New("the user went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := bounded.Acquiring(ctx, l, "a")
	bounded.Eventually(t, "it waits", func() bool { return waiters(t, client, key(prefix, "a")) == 1 })
	cancel(reason)
	err := bounded.Receive(t, "Acquire", done).Err
	for _, want := range []error{locks.ErrCancelled, locks.ErrHeld, context.Canceled, reason} {
		if !errors.Is(err, want) {
			t.Errorf("Acquire: %v; want it over %v", err, want)
		}
	}
	bounded.Eventually(t, "the waiter is gone", func() bool { return waiters(t, client, key(prefix, "a")) == 0 })
	bounded.Release(t, lease)
	lease, err = l.TryAcquire(bounded.Context(t), "a")
	if err != nil {
		t.Fatalf("TryAcquire after the cancelled one: %v", err)
	}
	bounded.Release(t, lease)
}

// A waiter that joins an existing subscription misses no message: that counts
// from before its first question, so it does not ask twice.
func TestJoiningWaiterHearsTheRelease(t *testing.T) {
	t.Parallel()
	prefix := space()
	r := &recorder{Client: newClient(t, servers.SharedRedis(t))}
	l := newLocker(t, r, rarePolls(prefix))
	lease := bounded.Acquire(t, newLocker(t, r.Client, rarePolls(prefix)), "a")
	first := bounded.Acquiring(bounded.Context(t), l, "a")
	r.settled(t, 2)
	second := bounded.Acquiring(bounded.Context(t), l, "a")
	r.settled(t, 3)
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the first waiter", first))
	bounded.Release(t, bounded.Granted(t, "the second waiter", second))
	if got := len(r.takes); got != 5 {
		t.Errorf("%d takes, want three of the first waiter and two of the second", got)
	}
}
