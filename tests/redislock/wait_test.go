package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// rarePolls are options with which a test that relied on polling would fail.
func rarePolls(prefix string) *redislock.Options {
	return &redislock.Options{Prefix: prefix, TTL: 2 * time.Minute, PollInterval: 2 * time.Minute}
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

func TestReleaseWakesTheLongestWaiterByMessage(t *testing.T) {
	t.Parallel()
	addr, prefix := servers.SharedRedis(t), space()
	client := newClient(t, addr)
	lease := bounded.Acquire(t, newLocker(t, client, rarePolls(prefix)), "a")
	var order []<-chan bounded.Result
	for range 3 {
		r := &recorder{Client: newClient(t, addr)}
		order = append(order, bounded.Acquiring(bounded.Context(t), newLocker(t, r, rarePolls(prefix)), "a"))
		r.settled(t, 2)
	}
	for i, done := range order {
		bounded.Release(t, lease)
		lease = bounded.Granted(t, fmt.Sprintf("waiter %d after the release", i), done)
	}
	bounded.Release(t, lease)
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
	channel := key(prefix, "a") + "wake"
	bounded.Eventually(t, "one subscription", func() bool {
		return client.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
	})
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

func TestRequestsPerHandoverDoNotGrowWithWaiters(t *testing.T) {
	t.Parallel()
	perHandover := func(n int) float64 {
		counter := proxy.CountRedis(t, servers.SharedRedis(t))
		prefix := space()
		lease := bounded.Acquire(t, newLocker(t, newClient(t, counter.Addr()), rarePolls(prefix)), "a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		granted := make(chan *locks.Lease, n)
		for range n {
			r := &recorder{Client: newClient(t, counter.Addr())}
			l := newLocker(t, r, rarePolls(prefix))
			go func() {
				if lease, err := l.Acquire(ctx, "a"); err == nil {
					granted <- lease
				}
			}()
			r.settled(t, 2)
		}
		counter.Reset()
		heard := newClient(t, servers.SharedRedis(t)).Subscribe(ctx, key(prefix, "a")+"wake")
		defer heard.Close()
		if _, err := heard.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		const handovers = 4
		for range handovers {
			bounded.Release(t, lease)
			select {
			case lease = <-granted:
			case <-time.After(bounded.Patience):
				t.Fatal("no handover")
			}
		}
		requests := len(counter.Requests())
		for range handovers {
			if m, err := heard.ReceiveMessage(ctx); err != nil || len(strings.Fields(m.Payload)) > 2 {
				t.Errorf("a release told %v, error %v; want two waiters at most", m, err)
			}
		}
		return float64(requests) / handovers
	}
	few, many := perHandover(5), perHandover(25)
	t.Logf("requests per handover: %.1f with 5 waiters, %.1f with 25", few, many)
	if many > few+3 {
		t.Errorf("requests per handover: %.1f with 5 waiters, %.1f with 25; want no growth", few, many)
	}
}

// The second waiter looks after the first when a release was for a dead one.
func TestDeadWaiterDelaysTheNextLittle(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	lease := bounded.Acquire(t, newLocker(t, client, rarePolls(prefix)), "a")
	// As a process leaves it that was killed while it waited.
	k, far := key(prefix, "a"), float64(time.Now().Add(time.Hour).UnixMilli())
	client.ZAdd(t.Context(), k+"queue", redis.Z{Score: 1, Member: "dead"})
	client.ZAdd(t.Context(), k+"alive", redis.Z{Score: far, Member: "dead"})

	r := &recorder{Client: client}
	done := bounded.Acquiring(bounded.Context(t), newLocker(t, r, rarePolls(prefix)), "a")
	r.settled(t, 2)
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the live waiter", done))
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

// A release between the first question and the moment from which messages count
// would be missed, so a waiter asks again also if the subscription exists.
func TestJoiningWaiterAsksAgain(t *testing.T) {
	t.Parallel()
	prefix := space()
	r := &recorder{Client: newClient(t, servers.SharedRedis(t))}
	holder := newLocker(t, r.Client, rarePolls(prefix))
	l := newLocker(t, r, rarePolls(prefix))
	lease := bounded.Acquire(t, holder, "a")
	first := bounded.Acquiring(bounded.Context(t), l, "a")
	r.settled(t, 2)
	second := bounded.Acquiring(bounded.Context(t), l, "a")
	r.settled(t, 4)
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the first waiter", first))
	bounded.Release(t, bounded.Granted(t, "the second waiter", second))
}
