package locks_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/fencedkv/fencedkv/locks"
)

func TestCloseReleasesEveryLeaseAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g locks.Group
		var leases []*locks.Lease
		for range 3 {
			end, err := g.Begin("acquire", "jobs")
			if err != nil {
				t.Fatal(err)
			}
			lease, _, err := g.NewLease(t.Context(), grant(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			end()
			leases = append(leases, lease)
		}
		worked := false
		g.Go(func() { <-g.Closing(); time.Sleep(time.Second); worked = true })
		if err := g.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
		if !worked {
			t.Error("Close returned before the background work had ended")
		}
		for _, lease := range leases {
			wantEnd(t, lease, locks.ErrReleased)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Errorf("the second Close = %v", err)
		}
	}) // synctest fails if a goroutine is left
}

func TestNothingBeginsAfterClose(t *testing.T) {
	var g locks.Group
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Begin("acquire", "jobs"); !errors.Is(err, locks.ErrClosed) {
		t.Errorf("Begin = %v, want ErrClosed", err)
	}
	if g.Go(func() {}) {
		t.Error("Go started work in a closed group")
	}
	if _, _, err := g.NewLease(t.Context(), grant(time.Hour)); !errors.Is(err, locks.ErrClosed) {
		t.Errorf("NewLease = %v, want ErrClosed", err)
	}
}

// TestGrantThatArrivesDuringCloseIsGivenBack: the reply was on its way.
func TestGrantThatArrivesDuringCloseIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g locks.Group
		end, err := g.Begin("acquire", "jobs")
		if err != nil {
			t.Fatal(err)
		}
		g.Go(func() {}) // its goroutine waits for more until Close
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- g.Close(t.Context()) }()
		<-g.Closing()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("Close returned %v while a call was under way", err)
		default:
		}
		g.Go(func() {}) // and now it does not
		synctest.Wait()
		cleaned := false
		if !g.Go(func() { time.Sleep(time.Second); cleaned = true }) {
			t.Error("Go refused work of a call that is under way")
		}
		released := false
		late := grant(time.Hour)
		late.Release = func(context.Context) error { released = true; return nil }
		if _, _, err := g.NewLease(t.Context(), late); !errors.Is(err, locks.ErrClosed) {
			t.Errorf("NewLease = %v, want ErrClosed", err)
		}
		if !released {
			t.Error("the late grant was not given back")
		}
		end()
		if err := <-closed; err != nil || !cleaned {
			t.Errorf("Close = %v, cleanup done: %v", err, cleaned)
		}
	})
}

// A logger that fails a test from the work's goroutine ends it so.
func TestWorkIsDoneAfterWorkThatEndedItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g locks.Group
		g.Go(runtime.Goexit)
		synctest.Wait()
		done := false
		g.Go(func() { done = true })
		synctest.Wait()
		if !done {
			t.Error("Go took work that nobody does")
		}
		if err := g.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

func TestEndOfACallCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g locks.Group
		endFirst, _ := g.Begin("acquire", "jobs")
		endSecond, _ := g.Begin("acquire", "jobs")
		endFirst()
		endFirst()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Close(ctx); !errors.Is(err, locks.ErrCancelled) {
			t.Errorf("Close = %v while a call is under way, want ErrCancelled", err)
		}
		endSecond()
		if err := g.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

func TestGroupForgetsLeasesThatHaveEnded(t *testing.T) {
	var g locks.Group
	kept := func() weak.Pointer[locks.Lease] {
		end, err := g.Begin("acquire", "jobs")
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		lease, _, err := g.NewLease(t.Context(), grant(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		_ = lease.Release(t.Context())
		return weak.Make(lease)
	}()
	for began := time.Now(); kept.Value() != nil; runtime.GC() {
		if time.Since(began) > 10*time.Second {
			t.Fatal("a released lease is never collected")
		}
	}
	if err := g.Close(t.Context()); err != nil {
		t.Errorf("Close = %v", err)
	}
}

func TestCloseIsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g locks.Group
		stuck := grant(time.Minute)
		stuck.ReleaseTimeout, stuck.ReleaseWindow = time.Minute, time.Millisecond
		stuck.Release = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		end, _ := g.Begin("acquire", "jobs")
		if _, _, err := g.NewLease(t.Context(), stuck); err != nil {
			t.Fatal(err)
		}
		end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Close(ctx); !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v, want ErrCancelled and the deadline's error", err)
		}
		// The release that was stuck has failed by then.
		if err := g.Close(t.Context()); !errors.Is(err, locks.ErrUnreachable) {
			t.Errorf("Close with time = %v, want ErrUnreachable", err)
		}
	})
}

func TestCloseCutShortKeepsEveryTruth(t *testing.T) {
	why := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	var g locks.Group
	end, err := g.Begin("acquire", "jobs")
	if err != nil {
		t.Fatal(err)
	}
	err = g.Close(ctx)
	for _, want := range []error{locks.ErrCancelled, context.Canceled, why} {
		if !errors.Is(err, want) {
			t.Errorf("Close = %v, which is not over %v", err, want)
		}
	}
	end()
	for range 100 { // nothing is left, so that there is nothing to cut short
		if err := g.Close(ctx); err != nil {
			t.Fatalf("Close of an idle group = %v, want nil", err)
		}
	}
}

// TestLeaseThatHasRunOutOnArrivalIsForgotten: its goroutine may end before
// NewLease returns; the race detector watches.
func TestLeaseThatHasRunOutOnArrivalIsForgotten(t *testing.T) {
	for range 100 {
		var g locks.Group
		end, err := g.Begin("acquire", "jobs")
		if err != nil {
			t.Fatal(err)
		}
		old := grant(time.Hour)
		old.Sent = old.Sent.Add(-time.Hour)
		if _, _, err := g.NewLease(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		end()
		if err := g.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
}

// TestCloseReportsNoReleaseThatWasConfirmedLater: the first answer was lost.
func TestCloseReportsNoReleaseThatWasConfirmedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g locks.Group
		calls := 0
		slow := grant(time.Minute)
		slow.Release = func(context.Context) error {
			if calls++; calls == 1 {
				return errAway
			}
			return nil
		}
		end, _ := g.Begin("acquire", "jobs")
		if _, _, err := g.NewLease(t.Context(), slow); err != nil {
			t.Fatal(err)
		}
		end()
		if err := g.Close(t.Context()); err != nil || calls != 2 {
			t.Errorf("Close = %v after %d calls of Release, want nil after 2", err, calls)
		}
	})
}

func TestCloseReportsReleasesThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g locks.Group
		bad := grant(time.Second)
		bad.Release = func(context.Context) error { return errAway }
		end, _ := g.Begin("acquire", "jobs")
		if _, _, err := g.NewLease(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
		end()
		if err := g.Close(t.Context()); !errors.Is(err, errAway) || !errors.Is(err, locks.ErrUnreachable) {
			t.Errorf("Close = %v, want the failed release", err)
		}
	})
}
