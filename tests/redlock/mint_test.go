package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// An attempt at a lock that is held uses up no number, whether it waits or not.
func TestOnlyGrantsMint(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	l := s.redlock(t, rarePolls(prefix))
	lease := bounded.Acquire(t, l, "a")
	want := fmt.Sprint(lease.Token().Seq, " ", lease.Token().Holder)
	minted := func() bool { return s.all(func(i int) bool { return s.get(t, i, k+"count") == want }) }
	bounded.Eventually(t, "all servers count the grant", minted)

	if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("TryAcquire: %v, want ErrHeld", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiter := bounded.Acquiring(ctx, l, "a")
	bounded.Eventually(t, "all servers know the waiter", func() bool { return s.queued(t, prefix) })
	cancel()
	if r := bounded.Receive(t, "the waiter", waiter); !errors.Is(r.Err, locks.ErrCancelled) {
		t.Errorf("the waiter: %v, want ErrCancelled", r.Err)
	}
	bounded.Eventually(t, "nobody waits", func() bool {
		return s.all(func(i int) bool { return s.clients[i].Exists(t.Context(), k+"queue").Val() == 0 })
	})
	if !minted() {
		t.Errorf("the counters are %q, %q, %q after two attempts that failed, want %q",
			s.get(t, 0, k+"count"), s.get(t, 1, k+"count"), s.get(t, 2, k+"count"), want)
	}
	bounded.Release(t, lease)
}

// Counters do not pile up. From a day after its number read as time a counter is
// not needed: the clock alone gives a higher one.
func TestCounterExpiresADayAfterItsNumber(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	l := s.redlock(t, patient(prefix))
	for range 2 { // the release keeps the counter, and its expiry
		lease := bounded.Acquire(t, l, "a")
		bounded.Release(t, lease)
		released := fmt.Sprint(lease.Token().Seq, " ", lease.Token().Holder, " released")
		bounded.Eventually(t, "all servers know of the release", func() bool {
			return s.all(func(i int) bool { return s.get(t, i, k+"count") == released })
		})
		least := int64(lease.Token().Seq/1000) + 24*time.Hour.Milliseconds()
		for i, client := range s.clients {
			at, err := client.Do(t.Context(), "PEXPIRETIME", k+"count").Int64()
			if most := least + time.Hour.Milliseconds(); err != nil || at < least || at > most {
				t.Errorf("the counter of server %d expires at %v, %v, want a day after its number, %d, or little later", i+1, at, err, least)
			}
		}
	}
}

// From 1e14 Lua's tostring loses digits, from 2^53 a double does.
func TestNumbersAreExactUpTo53Bits(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	l := s.redlock(t, patient(prefix))
	bounded.Release(t, bounded.Acquire(t, l, "first use"))
	const most = 1<<53 - 1
	for _, last := range []uint64{1<<52 + 1, 8_999_999_999_999_999, most - 2, most - 1} { // ahead of every clock
		for _, client := range s.clients {
			client.Set(t.Context(), k+"count", fmt.Sprint(last, " somebody"), 0)
		}
		lease := bounded.Acquire(t, l, "a")
		if got := lease.Token().Seq; got != last+1 {
			t.Errorf("after %d: number %d, want %d", last, got, last+1)
		}
		want := fmt.Sprint(last+1, " ", lease.Token().Holder)
		bounded.Eventually(t, "all servers have "+want, func() bool {
			return s.all(func(i int) bool { return s.get(t, i, k+"count") == want })
		})
		bounded.Release(t, lease)
		bounded.Eventually(t, "all servers are free", func() bool {
			return s.all(func(i int) bool { return s.get(t, i, k+"lock") == "" && s.get(t, i, k+"count") == want+" released" })
		})
	}
	for _, last := range []string{"9007199254740991", "9007199254740992", "18446744073709551615", "1e3", "-1", "many"} {
		for _, client := range s.clients {
			client.Set(t.Context(), k+"count", last+" somebody", 0)
		}
		if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrUnsupported) {
			t.Errorf("after %q: %v, want ErrUnsupported", last, err)
		}
		if got := s.entries(t, k); got != 0 {
			t.Errorf("after %q: the lock is taken without a number", last)
		}
	}
}
