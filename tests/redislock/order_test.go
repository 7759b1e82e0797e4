package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// queued is Acquire in the background that has its place when queued returns.
func queued(t testing.TB, client *redis.Client, l locks.Locker, k string) <-chan bounded.Result {
	t.Helper()
	before := waiters(t, client, k)
	return bounded.Queue(t, l, "a", func() bool { return waiters(t, client, k) == before+1 })
}

// dead leaves a waiter on the server as a process does that was killed, and
// whose Locker no other waiter shares.
func dead(t testing.TB, client *redis.Client, k, id string) {
	t.Helper()
	now := time.Now()
	member := func(score int64) redis.Z { return redis.Z{Score: float64(score), Member: id} }
	client.ZAdd(t.Context(), k+"queue", member(now.UnixMicro()))
	client.ZAdd(t.Context(), k+"alive", member(now.Add(time.Hour).UnixMilli()))
}

// has waits for the text of the lock's key.
func has(t testing.TB, client *redis.Client, k, want string) {
	t.Helper()
	bounded.Eventually(t, "the lock's key is "+want, func() bool { return client.Get(t.Context(), k+"lock").Val() == want })
}

func TestWaitersAreServedInOrderOfArrival(t *testing.T) {
	t.Parallel()
	prefix, addr := space(), servers.SharedRedis(t)
	client, k := newClient(t, addr), key(prefix, "a")
	const contenders, rounds = 8, 5
	var lockers []locks.Locker
	for range contenders {
		lockers = append(lockers, newLocker(t, newClient(t, addr), rarePolls(prefix)))
	}
	lease := bounded.Acquire(t, newLocker(t, client, rarePolls(prefix)), "a")
	var line []<-chan bounded.Result
	for _, l := range lockers {
		line = append(line, queued(t, client, l, k))
	}
	for i := range contenders * rounds {
		bounded.Release(t, lease)
		lease = bounded.Granted(t, fmt.Sprintf("grant %d, to the first in line", i), line[0])
		for behind, done := range line[1:] {
			select {
			case r := <-done:
				t.Fatalf("grant %d went to the one %d places behind too, error %v", i, behind+1, r.Err)
			default:
			}
		}
		// It comes again, behind all others, while it holds.
		line = append(line[1:], queued(t, client, lockers[i%contenders], k))
	}
	bounded.Release(t, lease)
	for i, done := range line {
		bounded.Release(t, bounded.Granted(t, fmt.Sprintf("the last round, place %d", i), done))
	}
}

func TestReservedLockIsNotBarged(t *testing.T) {
	t.Parallel()
	prefix := space()
	client, k := newClient(t, servers.SharedRedis(t)), key(prefix, "a")
	l := newLocker(t, client, rarePolls(prefix))
	lease := bounded.Acquire(t, l, "a")
	dead(t, client, k, "dead.1")
	bounded.Release(t, lease)
	has(t, client, k, "reserved dead.1")
	if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("TryAcquire of a reserved lock: %v, want ErrHeld", err)
	}
	done := queued(t, client, l, k)
	has(t, client, k, "reserved dead.1")
	client.PExpire(t.Context(), k+"lock", time.Millisecond)
	select {
	case r := <-done:
		t.Errorf("the newcomer had the lock at once, error %v", r.Err)
	default:
	}
}

// A lock that nobody has given up, such as one that was deleted by hand, is
// still not for whoever asks first.
func TestFreeLockGoesToTheFirstWaiterWhoeverAsks(t *testing.T) {
	t.Parallel()
	prefix, addr := space(), servers.SharedRedis(t)
	client, k := newClient(t, addr), key(prefix, "a")
	newcomer := newLocker(t, newClient(t, addr), rarePolls(prefix))
	for what, ask := range map[string]func() (*locks.Lease, error){
		"TryAcquire": func() (*locks.Lease, error) { return newcomer.TryAcquire(bounded.Context(t), "a") },
		"Acquire": func() (*locks.Lease, error) {
			ctx, cancel := context.WithCancel(t.Context())
			done := bounded.Acquiring(ctx, newcomer, "a")
			bounded.Eventually(t, "the newcomer has asked", func() bool { return client.Exists(t.Context(), k+"lock").Val() == 1 })
			cancel()
			r := bounded.Receive(t, "the newcomer", done)
			return r.Lease, r.Err
		},
	} {
		client.Set(t.Context(), k+"lock", "1 somebody", time.Hour)
		r := &recorder{Client: client}
		first := bounded.Acquiring(bounded.Context(t), newLocker(t, r, rarePolls(prefix)), "a")
		r.settled(t, 2)
		client.Del(t.Context(), k+"lock")
		if _, err := ask(); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("%s of a free lock with a waiter: %v, want ErrHeld", what, err)
		}
		bounded.Release(t, bounded.Granted(t, "the waiter, after "+what, first))
	}
}

// The server's clock is set back between two arrivals.
func TestArrivalsRiseEvenIfTheClockDoesNot(t *testing.T) {
	t.Parallel()
	prefix := space()
	client, k := newClient(t, servers.SharedRedis(t)), key(prefix, "a")
	client.Set(t.Context(), k+"lock", "1 somebody", time.Hour)
	dead(t, client, k, "early.1")
	ahead := float64(time.Now().Add(time.Hour).UnixMicro())
	client.ZAdd(t.Context(), k+"queue", redis.Z{Score: ahead, Member: "early.1"})
	queued(t, client, newLocker(t, client, rarePolls(prefix)), k)
	if got := client.ZRange(t.Context(), k+"queue", 0, 0).Val(); len(got) != 1 || got[0] != "early.1" {
		t.Errorf("%v is first, want the one that was there before", got)
	}
}

// A release and a claim: the other waiters do not even hear of it.
func TestHandoverCostsTwoRequestsWith500Waiters(t *testing.T) {
	t.Parallel()
	perHandover := func(n int) float64 {
		counter := proxy.CountRedis(t, servers.SharedRedis(t))
		prefix := space()
		client := redis.NewClient(&redis.Options{Addr: counter.Addr(), ContextTimeoutEnabled: true, PoolSize: 8})
		t.Cleanup(func() { client.Close() })
		lease := bounded.Acquire(t, newLocker(t, client, rarePolls(prefix)), "a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		granted := make(chan *locks.Lease, n)
		r := &recorder{Client: client}
		for range n {
			l := newLocker(t, r, rarePolls(prefix))
			go func() {
				if lease, err := l.Acquire(ctx, "a"); err == nil {
					granted <- lease
				}
			}()
		}
		r.settled(t, 2*n)
		if got := listening(t, newClient(t, servers.SharedRedis(t)), prefix); got != n {
			t.Fatalf("%d of %d waiters listen", got, n)
		}
		counter.Reset()
		const handovers = 4
		for range handovers {
			bounded.Release(t, lease)
			lease = bounded.Receive(t, "the next lease", granted)
		}
		return float64(len(counter.Requests())) / handovers
	}
	few, many := perHandover(5), perHandover(500)
	t.Logf("requests per handover: %.1f with 5 waiters, %.1f with 500", few, many)
	if few != 2 || many != 2 {
		t.Errorf("requests per handover: %.1f with 5 waiters, %.1f with 500; want 2", few, many)
	}
}
