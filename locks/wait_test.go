package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// held is a Locker whose locks all are somebody else's.
type held struct{ one }

func (h *held) Acquire(ctx context.Context, name string) (*locks.Lease, error) {
	<-ctx.Done()
	return nil, locks.Cancelled(ctx, name, locks.ErrHeld)
}

func TestWaitAtMostBoundsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := locks.Do(t.Context(), locks.WaitAtMost(&held{}, time.Second), "jobs",
			func(context.Context, *locks.Lease) error { return nil })
		for _, want := range []error{locks.ErrHeld, locks.ErrCancelled, context.DeadlineExceeded} {
			if !errors.Is(err, want) {
				t.Errorf("Do = %v, want an error over %v", err, want)
			}
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("waited %v, want 1s", got)
		}
	})
}

func TestWaitAtMostDoesNotBoundTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &one{grant: grant(time.Hour)}
		err := locks.Do(t.Context(), locks.WaitAtMost(o, time.Second), "jobs",
			func(ctx context.Context, lease *locks.Lease) error {
				time.Sleep(time.Minute)
				if ctx.Err() != nil || lease.Context().Err() != nil {
					t.Errorf("the work was bounded: %v, %v", context.Cause(ctx), context.Cause(lease.Context()))
				}
				return nil
			})
		if err != nil {
			t.Errorf("Do = %v", err)
		}
	})
}

func TestWaitAtMostOfNoLockerIsAnError(t *testing.T) {
	if _, err := locks.WaitAtMost(nil, time.Second).Acquire(t.Context(), "jobs"); !errors.Is(err, locks.ErrBadOption) {
		t.Errorf("Acquire = %v, want ErrBadOption", err)
	}
}
