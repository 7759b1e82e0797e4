package locks_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// TestRenewalIsDueByBothClocks: a lease that outlived the sleep must not run out
// after it because the monotonic clock still thinks that there is time.
func TestRenewalIsDueByBothClocks(t *testing.T) {
	renewed := make(chan struct{})
	g := grant(time.Hour)
	g.Sent = ago(t, 0, 30*time.Minute)
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

func TestFailedRenewalIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Minute)
		g.RenewEvery = 8 * time.Second
		var calls []time.Duration
		g.Renew = func(context.Context) error {
			if calls = append(calls, time.Since(g.Sent)); len(calls) == 1 {
				return errAway
			}
			return nil
		}
		lease, _ := locks.NewLease(t.Context(), g)
		time.Sleep(19 * time.Second)
		_ = lease.Release(t.Context())
		if want := []time.Duration{8 * time.Second, 10 * time.Second, 18 * time.Second}; !slices.Equal(calls, want) {
			t.Errorf("renewed at %v, want %v: a quarter of the time after a failure", calls, want)
		}
	})
}

func TestEachRenewalHasATimeoutOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for timeout, want := range map[time.Duration]time.Duration{0: time.Second, 400 * time.Millisecond: 400 * time.Millisecond} {
			got := make(chan time.Duration, 10)
			g := grant(3 * time.Second)
			g.RenewTimeout = timeout
			g.Renew = func(ctx context.Context) error {
				began := time.Now()
				<-ctx.Done()
				got <- time.Since(began)
				return ctx.Err()
			}
			lease, _ := locks.NewLease(t.Context(), g)
			if d := <-got; d != want {
				t.Errorf("RenewTimeout %v: the renewal was given %v, want %v", timeout, d, want)
			}
			_ = lease.Release(t.Context())
		}
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

// TestMaxHoldRefusesReportedRenewals: the adapter renews a shared session.
func TestMaxHoldRefusesReportedRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(10 * time.Second)
		g.MaxHold = 5 * time.Second
		lease, control := locks.NewLease(t.Context(), g)
		time.Sleep(g.MaxHold - time.Millisecond)
		if !control.Wants() || !control.Renewed(time.Now()) {
			t.Error("no renewal before MaxHold")
		}
		deadline := lease.Deadline()
		time.Sleep(time.Millisecond)
		if control.Wants() || control.Renewed(time.Now()) || !lease.Deadline().Equal(deadline) {
			t.Error("the lease was renewed after MaxHold")
		}
		wantLive(t, lease)
		_ = lease.Release(t.Context())
	})
}
