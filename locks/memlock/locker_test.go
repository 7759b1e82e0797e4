package memlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

func newLocker(t *testing.T, s memlock.Backend, o *memlock.Options) *memlock.Locker {
	t.Helper()
	l, err := memlock.NewLocker(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

func acquire(t *testing.T, l locks.Locker) *locks.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestNilOptionsAreDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := memlock.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		lease := acquire(t, l)
		if got, want := time.Until(lease.Deadline()), locks.Validity(memlock.DefaultTTL); got != want {
			t.Errorf("the deadline is %v away, want %v", got, want)
		}
	})
}

func TestOptionsThatCannotBeKeptAreRefused(t *testing.T) {
	for _, o := range []memlock.Options{{TTL: memlock.MinTTL - 1}, {TTL: -1}, {MaxHold: -1}} {
		if _, err := memlock.New(&o); !errors.Is(err, locks.ErrBadOption) {
			t.Errorf("New(%+v): got %v, want ErrBadOption", o, err)
		}
	}
	if _, err := memlock.NewLocker(nil, nil); !errors.Is(err, locks.ErrBadOption) {
		t.Errorf("NewLocker(nil): got %v, want ErrBadOption", err)
	}
}

func TestRenewalKeepsTheLockForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		lease := acquire(t, newLocker(t, s, nil))
		time.Sleep(24 * time.Hour)
		if err := lease.Context().Err(); err != nil {
			t.Fatalf("the lease ended: %v", context.Cause(lease.Context()))
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
		if got := s.Entries("job"); len(got) != 0 {
			t.Errorf("entries after Release: %v", got)
		}
	})
}

func TestMaxHoldEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		started := time.Now()
		lease := acquire(t, newLocker(t, s, &memlock.Options{TTL: 3 * time.Second, MaxHold: time.Minute}))
		<-lease.Context().Done()
		if got := time.Since(started); got > time.Minute+3*time.Second || got < time.Minute {
			t.Errorf("the lease ended after %v, want 1m to 1m3s", got)
		}
		if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrLost) {
			t.Errorf("cause: got %v, want ErrLost", cause)
		}
	})
}

func TestExpiredHolderLearnsItAtTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		lease := acquire(t, newLocker(t, s, &memlock.Options{TTL: 3 * time.Second}))
		s.Expire("job")
		started := time.Now()
		<-lease.Context().Done()
		if got := time.Since(started); got > time.Second {
			t.Errorf("told after %v, want at most the renewal interval of 1s", got)
		}
	})
}

func TestWaiterWhosePlaceIsRemovedQueuesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		holder := acquire(t, newLocker(t, s, nil))
		waiter := newLocker(t, s, nil)
		got := make(chan *locks.Lease)
		go func() {
			lease, err := waiter.Acquire(context.Background(), "job")
			if err != nil {
				t.Error(err)
			}
			got <- lease
		}()
		synctest.Wait()
		removed := s.Entries("job")[1]
		if err := s.Release(t.Context(), "job", removed.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if entries := s.Entries("job"); len(entries) != 2 || entries[1].ID == removed.ID {
			t.Errorf("entries: got %v, want the waiter again, with another id", entries)
		}
		if err := holder.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lease := <-got; s.Entries("job")[0].Token != lease.Token() {
			t.Errorf("the waiter has %v, the server says %v", lease.Token(), s.Entries("job"))
		}
	})
}

// away is a Backend that cannot be reached.
type away struct{ calls atomic.Int32 }

var errAway = errors.New("no route to host")

func (b *away) Take(context.Context, memlock.Attempt) (fence.Token, error) {
	b.calls.Add(1)
	return fence.Token{}, errAway
}
func (b *away) Wait(context.Context, string, string) error                 { return errAway }
func (b *away) Renew(context.Context, string, string, time.Duration) error { return errAway }
func (b *away) Release(context.Context, string, string) error              { return errAway }

func TestServerThatIsAwayIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &away{}
		var warned atomic.Int32
		l := newLocker(t, b, &memlock.Options{TTL: time.Second, Warn: func(string, error) { warned.Add(1) }})
		_, err := l.TryAcquire(t.Context(), "job")
		if !errors.Is(err, locks.ErrUnreachable) || !errors.Is(err, errAway) {
			t.Errorf("TryAcquire: got %v, want ErrUnreachable and the reason", err)
		}
		if got := b.calls.Load(); got != 3 {
			t.Errorf("TryAcquire asked %d times, want 3", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = l.Acquire(ctx, "job")
		for _, want := range []error{locks.ErrCancelled, context.DeadlineExceeded, locks.ErrUnreachable, errAway} {
			if !errors.Is(err, want) {
				t.Errorf("Acquire: errors.Is does not find %q in %q", want, err)
			}
		}
		if warned.Load() == 0 {
			t.Error("Warn was not told of the failed cleanup")
		}
	})
}

func TestCancelledWaiterHasLeftTheQueueWhenAcquireReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		acquire(t, newLocker(t, s, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := newLocker(t, s, nil).Acquire(ctx, "job")
		if !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, locks.ErrHeld) {
			t.Errorf("Acquire: got %v, want ErrCancelled and ErrHeld", err)
		}
		if got := s.Entries("job"); len(got) != 1 {
			t.Errorf("entries: got %v, want the holder's alone", got)
		}
	})
}
