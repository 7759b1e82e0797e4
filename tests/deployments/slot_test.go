package deployments_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// A Cluster refuses a script whose keys are in two slots, CROSSSLOT, and takes
// what stands between the first { and the next } for the slot, unless it is
// empty.
func TestAnyNameKeepsItsKeysInOneSlot(t *testing.T) {
	t.Parallel()
	c := servers.StartRedisCluster(t, nil)
	opts := &redislock.Options{TTL: 6 * time.Second, PollInterval: 100 * time.Millisecond}
	a := redisLocker(t, clusterClient(t, c, nil), opts)
	b := redisLocker(t, clusterClient(t, c, nil), opts)
	names := []string{
		"{", "}", "{}", "}{", "{}{a}", "{{}", "{a}", "a{b}c", "a{}b", "a}b{c", "{a", "a}",
		"\x00", "{\x00}", "a\x00{", "é{漢字}", "\xff{\xfe", " ", "%7B", strings.Repeat("}{", 60),
	}
	everyScript(t, a, b, names)
	// Nobody but a Cluster knows the slot of a key.
	slots := make(map[string]map[int64]bool)
	for _, m := range c.Members {
		node := redis.NewClient(&redis.Options{Addr: m.Addr()})
		defer node.Close()
		for _, key := range node.Keys(t.Context(), "*").Val() {
			lock := key[:strings.LastIndex(key, "}")]
			if slots[lock] == nil {
				slots[lock] = make(map[int64]bool)
			}
			slots[lock][node.ClusterKeySlot(t.Context(), key).Val()] = true
		}
	}
	if len(slots) != len(names) {
		t.Errorf("%d locks have left keys, want each of %d: its counter", len(slots), len(names))
	}
	for lock, in := range slots {
		if len(in) != 1 {
			t.Errorf("the keys of %s are in %d slots", lock, len(in))
		}
	}
}

// everyScript takes, waits, renews, gives back, and withdraws, all names at once.
func everyScript(t *testing.T, a, b locks.Locker, names []string) {
	t.Helper()
	var held []*locks.Lease
	var granted []time.Time
	for _, name := range names {
		lease := bounded.Try(t, a, name)
		held, granted = append(held, lease), append(granted, lease.Deadline())
	}
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var impatient, next []<-chan bounded.Result
	for _, name := range names {
		impatient = append(impatient, bounded.Acquiring(soon, b, name))
		next = append(next, bounded.Acquiring(bounded.Context(t), b, name))
	}
	for i, name := range names {
		if r := bounded.Receive(t, "one who gives up", impatient[i]); !errors.Is(r.Err, context.DeadlineExceeded) {
			t.Errorf("%q: Acquire that times out: %v, want DeadlineExceeded", name, r.Err)
		}
		if _, err := b.TryAcquire(bounded.Context(t), name); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("%q: TryAcquire of a held lock: %v, want ErrHeld", name, err)
		}
	}
	for i, lease := range held {
		handOver(t, lease, granted[i], next[i])
	}
}

// holdsWaitsRenewsReleases hands the lock over from the holder to a waiter.
func holdsWaitsRenewsReleases(t *testing.T, lease *locks.Lease, waiter locks.Locker) {
	t.Helper()
	handOver(t, lease, lease.Deadline(), bounded.Acquiring(bounded.Context(t), waiter, lease.Name()))
}

// handOver gives back a lease that was renewed since its first deadline.
func handOver(t *testing.T, lease *locks.Lease, granted time.Time, next <-chan bounded.Result) {
	t.Helper()
	bounded.Eventually(t, "a renewal", func() bool { return lease.Deadline().After(granted) || lease.Context().Err() != nil })
	bounded.Release(t, lease)
	got := bounded.Granted(t, "the waiter", next)
	rises(t, lease.Token(), got.Token())
	bounded.Release(t, got)
}
