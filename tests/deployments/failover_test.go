package deployments_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// The replica has seen the first grants, and not the last.
func TestAFailoverThatLosesGrantsGoesOnWithHigherNumbers(t *testing.T) {
	t.Parallel()
	s := servers.StartSentinels(t, nil)
	opts := &redislock.Options{TTL: long, PollInterval: 200 * time.Millisecond, RequestTimeout: time.Second}
	l := redisLocker(t, sentinelClient(t, s, nil), opts)
	waiting := *opts
	waiting.WaitReplicas = 1
	careful := redisLocker(t, sentinelClient(t, s, nil), &waiting)

	bounded.Release(t, bounded.Acquire(t, careful, "counted")) // the replica knows its number
	confirmed := bounded.Acquire(t, careful, "confirmed")
	s.LoseWrites(t)
	// The replica knows nothing of the second lock.
	var last []*locks.Lease
	for _, name := range []string{"counted", "unheard-of"} {
		for range 3 {
			bounded.Release(t, bounded.Acquire(t, l, name))
		}
		last = append(last, bounded.Acquire(t, l, name))
	}
	if lease, err := careful.TryAcquire(bounded.Context(t), "refused"); !errors.Is(err, locks.ErrUnreachable) || !strings.Contains(err.Error(), "0 of 1 replicas") {
		t.Fatalf("a grant that no replica confirms: %v, %v, want ErrUnreachable that says so", lease, err)
	}
	bounded.Release(t, bounded.Acquire(t, l, "refused")) // nothing of that grant has stayed

	s.Members[0].Kill(t)
	s.Members[1].Resume(t)
	if master := s.Master(t); master != 1 {
		t.Fatalf("member %d is master, want the replica", master)
	}

	successor := redisLocker(t, sentinelClient(t, s, nil), opts)
	if err := successor.Verify(bounded.Context(t), "confirmed", confirmed.Token()); err != nil {
		t.Errorf("verify a grant that the replica had confirmed: %v", err)
	}
	for _, lost := range last {
		if err := successor.Verify(bounded.Context(t), lost.Name(), lost.Token()); !errors.Is(err, fence.ErrUnverified) {
			t.Errorf("verify a forgotten grant: %v, want ErrUnverified", err)
		}
		next := bounded.Acquire(t, successor, lost.Name()) // the new master does not know that it is held
		rises(t, lost.Token(), next.Token())
		storeRefuses(t, lost.Token(), next.Token())
		bounded.Release(t, next)
	}
	if _, err := successor.TryAcquire(bounded.Context(t), "confirmed"); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("a lock whose grant the replica had confirmed: %v, want ErrHeld", err)
	}
	for _, lost := range last {
		// Told at the latest at the next renewal.
		if err := bounded.Ended(t, lost); !errors.Is(err, locks.ErrLost) {
			t.Errorf("the holder of a forgotten grant: %v, want ErrLost", err)
		}
	}
	if confirmed.Context().Err() != nil {
		t.Errorf("the lease whose grant the replica had confirmed has ended by %v", bounded.Ended(t, confirmed))
	}
}

// storeRefuses shows why the number matters: both believe that they hold the
// lock, and the store admits one.
func storeRefuses(t *testing.T, forgotten, next fence.Token) {
	t.Helper()
	store, err := fencedkv.Open(t.TempDir()+"/accounts.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	account := store.Resource("account")
	if err := account.Raise(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if err := account.Put(t.Context(), forgotten, []byte("balance"), nil); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a write with the forgotten grant's token: %v, want ErrStale", err)
	}
}

// The old master was cut off, goes on, and for some seconds calls itself master.
// Whoever still asks it gets the lock, which another holds. Exclusion is lost;
// the order of the numbers is not.
func TestNumbersRiseAcrossTwoMastersAtOnce(t *testing.T) {
	t.Parallel()
	s := servers.StartSentinels(t, nil)
	opts := &redislock.Options{TTL: long, RequestTimeout: 2 * time.Second}
	l := redisLocker(t, sentinelClient(t, s, nil), opts)
	direct := redis.NewClient(&redis.Options{Addr: s.Members[0].Addr(), ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { direct.Close() })
	late := redisLocker(t, direct, opts)

	first := bounded.Acquire(t, l, "x")
	bounded.Release(t, first)
	s.Members[0].Pause(t)
	if master := s.Master(t); master != 1 {
		t.Fatalf("member %d is master, want the replica", master)
	}
	second := bounded.Acquire(t, l, "x")
	s.Members[0].Resume(t)
	third := bounded.Try(t, late, "x") // the old master does not know that it is held
	bounded.Release(t, second)
	fourth := bounded.Acquire(t, l, "x")
	rises(t, first.Token(), second.Token())
	rises(t, second.Token(), third.Token())
	rises(t, third.Token(), fourth.Token())
	storeRefuses(t, second.Token(), third.Token())
	bounded.Release(t, fourth)
}
