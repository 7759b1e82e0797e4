package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

func TestReleaseIsIdempotent(t *testing.T) {
	calls := 0
	g := grant(time.Hour)
	g.Release = func(context.Context) error { calls++; return nil }
	lease, _ := locks.NewLease(t.Context(), g)
	for range 3 {
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release = %v, want nil", err)
		}
	}
	if calls != 1 {
		t.Errorf("the service was asked %d times, want once", calls)
	}
	wantEnd(t, lease, locks.ErrReleased)
}

func TestContextEndsBeforeTheServiceIsTold(t *testing.T) {
	g := grant(time.Hour)
	var lease *locks.Lease
	var seen error
	g.Release = func(context.Context) error { seen = lease.Context().Err(); return nil }
	lease, _ = locks.NewLease(t.Context(), g)
	_ = lease.Release(t.Context())
	if seen == nil {
		t.Error("the lease was still believed in while it was being released")
	}
}

func TestReleaseIsDetachedFromTheCallersEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := grant(time.Hour)
	var seen error
	g.Release = func(ctx context.Context) error { seen = ctx.Err(); return nil }
	lease, _ := locks.NewLease(ctx, g)
	cancel()
	if err := lease.Release(ctx); err != nil || seen != nil {
		t.Errorf("Release = %v with a context that says %v; want nil and nil", err, seen)
	}
}

func TestReleaseHasATimeoutOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Minute)
		g.ReleaseTimeout, g.ReleaseWindow = time.Second, time.Second
		g.Release = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		lease, _ := locks.NewLease(t.Context(), g)
		err := lease.Release(t.Context())
		if !errors.Is(err, locks.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Release = %v, want an error over ErrUnreachable and the deadline's", err)
		}
		if got := time.Since(g.Sent); got != time.Second {
			t.Errorf("Release took %v, want 1s", got)
		}
	})
}

func TestReleaseTimeoutIsFiveSecondsByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Minute)
		g.ReleaseWindow = time.Second
		g.Release = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		lease, _ := locks.NewLease(t.Context(), g)
		_ = lease.Release(t.Context())
		if got := time.Since(g.Sent); got != 5*time.Second {
			t.Errorf("Release took %v, want 5s", got)
		}
	})
}

// TestRemovalWaitsForTheRenewalUnderWay: a renewal that comes later might undo it.
func TestRemovalWaitsForTheRenewalUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renewing := false
		g := grant(time.Minute)
		g.RenewEvery = time.Second
		g.Renew = func(ctx context.Context) error {
			renewing = true
			<-ctx.Done()
			time.Sleep(time.Millisecond)
			renewing = false
			return ctx.Err()
		}
		g.Release = func(context.Context) error {
			if renewing {
				t.Error("the entry is removed while a renewal is under way")
			}
			return nil
		}
		lease, _ := locks.NewLease(t.Context(), g)
		time.Sleep(1500 * time.Millisecond)
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release = %v", err)
		}
		if got, want := time.Since(g.Sent), 1501*time.Millisecond; got != want {
			t.Errorf("Release was over after %v, want %v: it cuts the renewal short", got, want)
		}
	})
}

func TestRequestsCarryTheValuesOfAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		seen := make(chan any, 2)
		g := grant(time.Minute)
		g.RenewEvery = time.Second
		g.Renew = func(ctx context.Context) error { seen <- ctx.Value(key{}); return locks.ErrLost }
		g.Release = func(ctx context.Context) error { seen <- ctx.Value(key{}); return nil }
		_, _ = locks.NewLease(context.WithValue(t.Context(), key{}, "trace"), g)
		for _, request := range []string{"renewal", "release"} {
			if got := <-seen; got != "trace" {
				t.Errorf("the context of the %s carries %v, want the value of the caller's", request, got)
			}
		}
	})
}

func TestGrantWithoutEntryIsReleased(t *testing.T) {
	g := grant(time.Hour)
	g.Release = nil
	lease, _ := locks.NewLease(t.Context(), g)
	if err := lease.Release(t.Context()); err != nil || lease.Name() != g.Name {
		t.Errorf("Release of %q = %v, want nil", lease.Name(), err)
	}
}

func TestUnknownRemovalIsTriedAgainUntilItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, last := range []error{nil, locks.ErrLost} {
			calls := 0
			settled := make(chan error, 1)
			g := grant(time.Minute)
			g.Settled = func(err error) { settled <- err }
			g.Release = func(context.Context) error {
				if calls++; calls < 4 {
					return errAway
				}
				return last
			}
			lease, _ := locks.NewLease(t.Context(), g)
			if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrUnreachable) || !errors.Is(err, errAway) {
				t.Errorf("Release = %v, want ErrUnreachable and the service's error", err)
			}
			if err := <-settled; err != nil {
				t.Errorf("Settled(%v), want nil", err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("Release after the removal was confirmed = %v, want nil", err)
			}
		}
	})
}

func TestRemovalGivesUpWhenTheServiceMustHaveForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settled := make(chan error, 1)
		g := grant(10 * time.Second)
		g.Settled = func(err error) { settled <- err }
		calls, warned := 0, 0
		g.Release = func(context.Context) error { calls++; return errAway }
		g.Warn = func(string, error) { warned++ }
		lease, _ := locks.NewLease(t.Context(), g)
		_ = lease.Release(t.Context())
		if err := <-settled; !errors.Is(err, errAway) {
			t.Errorf("Settled(%v), want the service's error: the adapter must retire what the entry hangs on", err)
		}
		if got := time.Since(g.Sent); got < 10*time.Second || got > 12*time.Second {
			t.Errorf("gave up after %v, want about the lease time", got)
		}
		if calls < 10 || calls > 30 || warned != calls-1 {
			t.Errorf("the service was asked %d times in 10 s with %d warnings, want 10 to 30 and one for each but the last", calls, warned)
		}
	})
}

func TestLostLeaseRemovesItsOwnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settled := make(chan error, 1)
		g := grant(time.Second)
		g.Settled = func(err error) { settled <- err }
		lease, _ := locks.NewLease(t.Context(), g)
		if err := <-settled; err != nil {
			t.Errorf("Settled(%v), want nil", err)
		}
		wantEnd(t, lease, locks.ErrLost)
	})
}

func TestUnknownReleaseIsUnreachableWhateverTheAdapterCallsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := &locks.Error{Op: "release", Name: "jobs", Kind: locks.ErrCancelled, Err: context.DeadlineExceeded}
		settled := make(chan error, 1)
		g := grant(time.Second)
		g.Release = func(context.Context) error { return said }
		g.Settled = func(err error) { settled <- err }
		lease, _ := locks.NewLease(t.Context(), g)
		if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrUnreachable) || !errors.Is(err, said) {
			t.Errorf("Release = %v, want ErrUnreachable and what the adapter said", err)
		}
		<-settled
	})
}

func TestReleaseOfWhatTheServiceNoLongerHasIsLoss(t *testing.T) {
	g := grant(time.Hour)
	g.Release = func(context.Context) error { return locks.ErrLost }
	lease, _ := locks.NewLease(t.Context(), g)
	for range 2 {
		if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
			t.Errorf("Release = %v, want ErrLost", err)
		}
	}
}
