package locks_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

var errAway = errors.New("service away")

func grant(validity time.Duration) locks.Grant {
	return locks.Grant{
		Name:     "jobs",
		Token:    fence.Token{Seq: 7, Lineage: "test:jobs", Holder: "h"},
		Sent:     time.Now(),
		Validity: validity,
		Release:  func(context.Context) error { return nil },
	}
}

// wantEnd fails unless the lease's context has ended with a cause over want.
func wantEnd(t *testing.T, lease *locks.Lease, want error) {
	t.Helper()
	if err := lease.Context().Err(); !errors.Is(err, context.Canceled) {
		t.Fatalf("Context().Err() = %v, want context.Canceled", err)
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, want) {
		t.Fatalf("the lease ended with %v, want an error over %v", cause, want)
	}
}

// waitEnd waits for the end of the lease, but not for ever.
func waitEnd(t *testing.T, lease *locks.Lease) {
	t.Helper()
	select {
	case <-lease.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("the lease has not ended after a minute")
	}
}

func wantLive(t *testing.T, lease *locks.Lease) {
	t.Helper()
	if err := lease.Context().Err(); err != nil {
		t.Fatalf("the lease has ended: %v", context.Cause(lease.Context()))
	}
}

func TestLeaseEndsAtItsDeadlineCountedFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Second)
		time.Sleep(300 * time.Millisecond) // the reply took that long
		lease, _ := locks.NewLease(t.Context(), g)
		if got, want := lease.Deadline(), g.Sent.Add(time.Second); !got.Equal(want) {
			t.Errorf("Deadline() = %v, want %v, counted from before the request", got, want)
		}
		time.Sleep(699 * time.Millisecond)
		wantLive(t, lease)
		waitEnd(t, lease)
		if got := time.Since(g.Sent); got != time.Second {
			t.Errorf("Done after %v, want 1s", got)
		}
		wantEnd(t, lease, locks.ErrLost)
		if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
			t.Errorf("Release of a lost lease = %v, want ErrLost", err)
		}
	})
}

// TestErrLooksAtTheClockWhenCalled: the process was stopped, so no timer has
// fired yet; Err must know all the same.
func TestErrLooksAtTheClockWhenCalled(t *testing.T) {
	g := grant(time.Hour)
	g.Sent = time.Now().Add(-time.Hour)
	lease, _ := locks.NewLease(t.Context(), g)
	wantEnd(t, lease, locks.ErrLost)
}

// beforeSleep returns the time just before the machine slept for d, during which
// its monotonic clock did not move.
func beforeSleep(t *testing.T, d time.Duration) time.Time {
	t.Helper()
	sent := time.Now()
	// A Time with a monotonic reading keeps its wall seconds from bit 30 of its
	// first word on, and no API sets the two apart.
	*(*uint64)(unsafe.Pointer(&sent)) -= uint64(d/time.Second) << 30
	if wall := time.Now().Round(0).Sub(sent.Round(0)); wall < d || time.Since(sent) > time.Minute {
		t.Fatalf("the clocks say %v and %v: this Go keeps its times in another way", wall, time.Since(sent))
	}
	return sent
}

func TestWallClockCountsWhenTheMonotonicOneStoodStill(t *testing.T) {
	g := grant(time.Hour)
	g.Sent = beforeSleep(t, 2*time.Hour)
	lease, _ := locks.NewLease(t.Context(), g)
	wantEnd(t, lease, locks.ErrLost)
}

// TestRenewalIsDueByBothClocks: a lease that outlived the sleep must not run out
// after it because the monotonic clock still thinks that there is time.
func TestRenewalIsDueByBothClocks(t *testing.T) {
	renewed := make(chan struct{})
	g := grant(time.Hour)
	g.Sent = beforeSleep(t, 30*time.Minute)
	g.RenewEvery = 20 * time.Minute
	g.Renew = func(context.Context) error { close(renewed); return nil }
	lease, _ := locks.NewLease(t.Context(), g)
	select {
	case <-renewed:
	case <-time.After(10 * time.Second):
		t.Error("no renewal although the wall clock says that it is due")
	}
	_ = lease.Release(t.Context())
}

func TestRenewalMovesTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		g := grant(900 * time.Millisecond)
		g.Renew = func(context.Context) error { calls.Add(1); return nil }
		lease, _ := locks.NewLease(t.Context(), g)
		time.Sleep(time.Minute)
		wantLive(t, lease)
		if n := calls.Load(); n < 190 || n > 201 {
			t.Errorf("%d renewals in a minute, want about 200", n)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release = %v", err)
		}
		before := calls.Load()
		time.Sleep(time.Minute)
		if n := calls.Load(); n != before {
			t.Errorf("%d renewals after the release, want none", n-before)
		}
	})
}

func TestDeadlineCountsFromBeforeTheRenewalWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Second)
		g.RenewEvery, g.RenewTimeout = 400*time.Millisecond, 500*time.Millisecond
		first := true
		g.Renew = func(ctx context.Context) error {
			if !first {
				<-ctx.Done()
				return ctx.Err()
			}
			first = false
			time.Sleep(300 * time.Millisecond)
			return nil
		}
		lease, _ := locks.NewLease(t.Context(), g)
		waitEnd(t, lease)
		if got, want := time.Since(g.Sent), 1400*time.Millisecond; got != want {
			t.Errorf("the lease ended after %v, want %v", got, want)
		}
	})
}

func TestOneFailedRenewalIsNotLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, warned atomic.Int32
		g := grant(900 * time.Millisecond)
		g.Warn = func(string, error) { warned.Add(1) }
		g.Renew = func(context.Context) error {
			if calls.Add(1)%2 == 1 {
				return errAway
			}
			return nil
		}
		lease, _ := locks.NewLease(t.Context(), g)
		time.Sleep(10 * time.Second)
		wantLive(t, lease)
		if warned.Load() == 0 {
			t.Error("no warning of a failed renewal")
		}
		_ = lease.Release(t.Context())
	})
}

func TestFailingRenewalsAreLossAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Second)
		g.Renew = func(context.Context) error { return errAway }
		lease, _ := locks.NewLease(t.Context(), g)
		waitEnd(t, lease)
		if got := time.Since(g.Sent); got != time.Second {
			t.Errorf("lost after %v, want 1s: neither before the deadline nor after it", got)
		}
		wantEnd(t, lease, locks.ErrLost)
		_ = lease.Release(t.Context())
	})
}

func TestHungRenewalDoesNotHideTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Second)
		g.RenewTimeout = time.Hour
		g.Renew = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		lease, _ := locks.NewLease(t.Context(), g)
		waitEnd(t, lease)
		if got := time.Since(g.Sent); got != time.Second {
			t.Errorf("lost after %v, want 1s", got)
		}
		_ = lease.Release(t.Context())
	})
}

func TestLossToldByTheServiceIsSignalledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Hour)
		g.RenewEvery = time.Second
		g.Renew = func(context.Context) error { return &locks.Error{Op: "renew", Kind: locks.ErrLost, Err: errAway} }
		lease, _ := locks.NewLease(t.Context(), g)
		waitEnd(t, lease)
		if got := time.Since(g.Sent); got != time.Second {
			t.Errorf("lost after %v, want 1s, the first renewal", got)
		}
		wantEnd(t, lease, locks.ErrLost)
		wantEnd(t, lease, errAway)
	})
}

func TestLossNamesTheLockAndSaysEachThingOnce(t *testing.T) {
	for _, name := range []string{"jobs", ""} {
		lease, control := locks.NewLease(t.Context(), grant(time.Hour))
		told := &locks.Error{Op: "renew", Name: name, Kind: locks.ErrLost, Err: errAway}
		control.Lose(told)
		cause := context.Cause(lease.Context())
		if !errors.Is(cause, told) || !strings.Contains(cause.Error(), `"jobs"`) {
			t.Errorf("the cause is %v, want %v and the lock's name", cause, told)
		}
		if n := strings.Count(cause.Error(), locks.ErrLost.Error()); name != "" && n != 1 {
			t.Errorf("the text %q says %d times that the lease is lost", cause, n)
		}
	}
	lease, control := locks.NewLease(t.Context(), grant(time.Hour))
	control.Lose(&locks.Error{Op: "renew", Name: "jobs", Kind: locks.ErrUnreachable})
	wantEnd(t, lease, locks.ErrLost)
}

func TestLostLeaseIsTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, control := locks.NewLease(t.Context(), grant(time.Second))
		control.Lose(errAway)
		wantEnd(t, lease, locks.ErrLost)
		if control.Renewed(time.Now()) {
			t.Error("a lost lease was renewed")
		}
		if control.Wants() {
			t.Error("a lost lease wants to be renewed")
		}
		_ = lease.Release(t.Context())
		wantEnd(t, lease, locks.ErrLost)
	})
}

func TestReportedRenewalsMoveTheDeadlineAndNeverBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Second)
		lease, control := locks.NewLease(t.Context(), g)
		time.Sleep(500 * time.Millisecond)
		sent := time.Now()
		if !control.Renewed(sent) || !control.Renewed(g.Sent.Add(-time.Hour)) {
			t.Fatal("Renewed refused a live lease")
		}
		if got, want := lease.Deadline(), sent.Add(time.Second); !got.Equal(want) {
			t.Errorf("Deadline() = %v, want %v", got, want)
		}
		waitEnd(t, lease)
		if control.Renewed(time.Now()) {
			t.Error("a lease was renewed after its deadline")
		}
	})
}

func TestMaxHoldEndsRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(900 * time.Millisecond)
		g.MaxHold = 5 * time.Second
		g.Renew = func(context.Context) error { return nil }
		lease, control := locks.NewLease(t.Context(), g)
		defer func() { _ = lease.Release(t.Context()) }()
		time.Sleep(g.MaxHold - time.Millisecond)
		wantLive(t, lease)
		waitEnd(t, lease)
		if got := time.Since(g.Sent); got < g.MaxHold || got > g.MaxHold+g.Validity {
			t.Errorf("the lease ended after %v, want between MaxHold and one lease time later", got)
		}
		wantEnd(t, lease, locks.ErrLost)
		if text := context.Cause(lease.Context()).Error(); !strings.Contains(text, "MaxHold, 5s") {
			t.Errorf("the cause %q does not say that MaxHold ended renewal", text)
		}
		if control.Wants() {
			t.Error("the lease wants to be renewed after MaxHold")
		}
	})
}

func TestContextCarriesTokenAndValuesButNotTheCallersEnd(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "trace"))
	lease, _ := locks.NewLease(ctx, grant(time.Hour))
	cancel()
	wantLive(t, lease)
	if got, _ := fence.FromContext(lease.Context()); got != lease.Token() {
		t.Errorf("the context carries %v, want %v", got, lease.Token())
	}
	if lease.Context().Value(key{}) != "trace" {
		t.Error("a value of the caller's context is gone")
	}
	child, stop := context.WithCancel(lease.Context())
	defer stop()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	<-child.Done()
	if cause := context.Cause(child); !errors.Is(cause, locks.ErrReleased) {
		t.Errorf("a derived context ended with %v, want ErrReleased", cause)
	}
}
