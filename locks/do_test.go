package locks_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// one is a Locker with a single grant to give.
type one struct {
	grant   locks.Grant
	err     error
	lease   *locks.Lease
	control locks.Control
}

func (o *one) Acquire(ctx context.Context, name string) (*locks.Lease, error) {
	if o.err != nil {
		return nil, o.err
	}
	o.grant.Name = name
	o.lease, o.control = locks.NewLease(ctx, o.grant)
	return o.lease, nil
}
func (o *one) TryAcquire(ctx context.Context, name string) (*locks.Lease, error) {
	return o.Acquire(ctx, name)
}
func (o *one) Close(context.Context) error { return nil }

func TestDoRunsUnderTheLockAndReleases(t *testing.T) {
	o := &one{grant: grant(time.Hour)}
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "v")
	ran := false
	err := locks.Do(ctx, o, "jobs", func(ctx context.Context, lease *locks.Lease) error {
		ran = true
		if got, _ := fence.FromContext(ctx); got != lease.Token() || ctx.Value(key{}) != "v" {
			t.Errorf("the context carries %v and %v, want the token and the caller's values", got, ctx.Value(key{}))
		}
		return ctx.Err()
	})
	if err != nil || !ran {
		t.Errorf("Do = %v, ran: %v", err, ran)
	}
	wantEnd(t, o.lease, locks.ErrReleased)
}

func TestDoReturnsTheFunctionsErrorAndStillReleases(t *testing.T) {
	o := &one{grant: grant(time.Hour)}
	want := errors.New("work failed")
	if err := locks.Do(t.Context(), o, "jobs", func(context.Context, *locks.Lease) error { return want }); !errors.Is(err, want) {
		t.Errorf("Do = %v, want %v", err, want)
	}
	wantEnd(t, o.lease, locks.ErrReleased)
}

func TestDoReleasesAfterPanicAndGoexit(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		o := &one{grant: grant(time.Hour)}
		gone := make(chan any)
		go func() {
			defer func() { gone <- recover() }()
			_ = locks.Do(context.Background(), o, "jobs", func(context.Context, *locks.Lease) error { leave(); return nil })
		}()
		if got := <-gone; name == "panic" && got != "boom" {
			t.Errorf("the caller recovered %v, want its own panic", got)
		}
		wantEnd(t, o.lease, locks.ErrReleased)
	}
}

func TestDoContextEndsWithDo(t *testing.T) {
	var left context.Context
	if err := locks.Do(t.Context(), &one{grant: grant(time.Hour)}, "jobs", func(ctx context.Context, _ *locks.Lease) error {
		left = ctx
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-left.Done():
	default:
		t.Error("the context outlives Do")
	}
}

// TestDoContextIsDoneWhenTheLeaseIs: a worker may wait for Done and never call
// Err.
func TestDoContextIsDoneWhenTheLeaseIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Second)
		err := locks.Do(t.Context(), &one{grant: g}, "jobs", func(ctx context.Context, lease *locks.Lease) error {
			<-ctx.Done()
			if got := time.Since(g.Sent); got != time.Second {
				t.Errorf("Done after %v, want 1s", got)
			}
			if cause := context.Cause(ctx); !errors.Is(cause, locks.ErrLost) {
				t.Errorf("the context ended with %v, want ErrLost", cause)
			}
			return context.Cause(lease.Context())
		})
		if !errors.Is(err, locks.ErrLost) {
			t.Fatalf("Do = %v, want the loss", err)
		}
		if n := strings.Count(err.Error(), locks.ErrLost.Error()); n != 1 {
			t.Errorf("Do = %v, which says %d times that the lease is lost", err, n)
		}
	})
}

func TestDoTellsOfALossBeforeTheFunctionReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &one{grant: grant(time.Hour)}
		err := locks.Do(t.Context(), o, "jobs", func(ctx context.Context, lease *locks.Lease) error {
			o.control.Lose(errAway)
			if ctx.Err() == nil {
				t.Error("the context's Err does not know yet")
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, locks.ErrLost) {
				t.Errorf("the context ended with %v, want ErrLost", cause)
			}
			return nil
		})
		if !errors.Is(err, locks.ErrLost) || !errors.Is(err, errAway) {
			t.Errorf("Do = %v, want ErrLost and the reason", err)
		}
	})
}

// TestDoContextLooksAtTheClock: no timer has fired, as after a SIGCONT.
func TestDoContextLooksAtTheClock(t *testing.T) {
	g := grant(time.Hour)
	g.Sent = g.Sent.Add(-time.Hour)
	err := locks.Do(t.Context(), &one{grant: g}, "jobs", func(ctx context.Context, _ *locks.Lease) error {
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), locks.ErrLost) {
			t.Errorf("Err %v, cause %v; want an end over ErrLost", ctx.Err(), context.Cause(ctx))
		}
		return nil
	})
	if !errors.Is(err, locks.ErrLost) {
		t.Errorf("Do = %v, want ErrLost", err)
	}
}

// TestDoContextLooksAtTheClockOfTheOuterLease: the outer lease runs out while the
// inner one lives, and no timer has fired.
func TestDoContextLooksAtTheClockOfTheOuterLease(t *testing.T) {
	g := grant(time.Hour)
	g.Sent = g.Sent.Add(-time.Hour)
	inner := &one{grant: grant(time.Hour)}
	err := locks.Do(t.Context(), &one{grant: g}, "outer", func(ctx context.Context, _ *locks.Lease) error {
		return locks.Do(ctx, inner, "inner", func(ctx context.Context, lease *locks.Lease) error {
			if ctx.Err() == nil || !errors.Is(context.Cause(ctx), locks.ErrLost) {
				t.Errorf("Err %v, cause %v; want the end of the outer lease", ctx.Err(), context.Cause(ctx))
			}
			wantLive(t, lease)
			return nil
		})
	})
	if !errors.Is(err, locks.ErrLost) {
		t.Errorf("Do = %v, want the outer ErrLost", err)
	}
}

// TestDoContextKeepsTheCallersReason: the look at the clock must not turn a
// deadline into a cancellation.
func TestDoContextKeepsTheCallersReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := locks.Do(ctx, &one{grant: grant(time.Minute)}, "jobs", func(ctx context.Context, _ *locks.Lease) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, locks.ErrLost) {
			t.Errorf("Do = %v, want the caller's deadline and no loss", err)
		}
	})
}

func TestDoContextEndsRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(900 * time.Millisecond)
		g.Renew = func(context.Context) error { return nil }
		o := &one{grant: g}
		ctx, cancel := context.WithCancel(t.Context())
		err := locks.Do(ctx, o, "jobs", func(work context.Context, lease *locks.Lease) error {
			time.Sleep(5 * time.Second)
			wantLive(t, lease)
			cancel()
			<-work.Done() // a worker that ignores it goes on
			waitEnd(t, lease)
			if got := time.Since(g.Sent); got > 6*time.Second {
				t.Errorf("the lock was held %v after its caller had given up", got-5*time.Second)
			}
			return nil
		})
		if !errors.Is(err, locks.ErrLost) || !strings.Contains(err.Error(), "context of Do") {
			t.Errorf("Do = %v, want ErrLost and what ended renewal", err)
		}
	})
}

// noLease breaks the contract of a Locker.
type noLease struct{ one }

func (noLease) Acquire(context.Context, string) (*locks.Lease, error) { return nil, nil }

func TestDoWithoutALeaseIsAnError(t *testing.T) {
	err := locks.Do(t.Context(), &noLease{}, "jobs", func(context.Context, *locks.Lease) error {
		t.Error("the function ran without a lease")
		return nil
	})
	if e := new(locks.Error); !errors.As(err, &e) || e.Name != "jobs" {
		t.Errorf("Do = %v, want an error that names the lock", err)
	}
}

func TestDoRefusesNil(t *testing.T) {
	var none context.Context
	work := func(context.Context, *locks.Lease) error { return nil }
	for _, locker := range []locks.Locker{nil, (*one)(nil)} {
		if err := locks.Do(t.Context(), locker, "jobs", work); !errors.Is(err, locks.ErrBadOption) {
			t.Errorf("Do with a nil %T = %v, want ErrBadOption", locker, err)
		}
	}
	if err := locks.Do(none, &one{}, "jobs", work); !errors.Is(err, locks.ErrBadOption) {
		t.Errorf("Do with a nil context = %v, want ErrBadOption", err)
	}
	if err := locks.Do(t.Context(), &one{}, "jobs", nil); !errors.Is(err, locks.ErrBadOption) {
		t.Errorf("Do with a nil function = %v, want ErrBadOption", err)
	}
	if err := locks.Do(t.Context(), &one{err: locks.ErrHeld}, "jobs", work); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("Do = %v, want the error of Acquire", err)
	}
}
