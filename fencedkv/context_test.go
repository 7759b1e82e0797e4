package fencedkv_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func TestEndedContextAppliesNothing(t *testing.T) {
	s := open(t, nil)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for name, call := range everyCall(s) {
		err := call(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("%s: got %v, want one over context.Canceled and the cause", name, err)
		}
	}
	wantMark(t, s.Resource("r"), fence.Token{})
}

func TestContextThatEndsInTheQueueTakesTheRequestOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil)
		r, q := s.Resource("r"), s.Resource("q")
		queued := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		must(t, r.Update(t.Context(), token(1, ""), func(context.Context, *fencedkv.Tx) error {
			go func() { queued <- q.Put(ctx, token(1, ""), b("k"), b("v")) }()
			synctest.Wait() // it is in the queue
			cancel()
			// It comes out while the writer's place is still taken.
			wantIs(t, <-queued, context.Canceled)
			return nil
		}))
		wantMark(t, q, fence.Token{})
	})
}

// clockContext ends like a lease whose time ran out while the process was
// stopped: Err knows, and the runtime's timers have not run yet.
type clockContext struct {
	context.Context
	asked, ends int
}

func (c *clockContext) Err() error {
	if c.asked++; c.asked > c.ends {
		return context.DeadlineExceeded
	}
	return nil
}

func TestContextIsAskedOnceMoreBeforeTheCommit(t *testing.T) {
	r := open(t, nil).Resource("r")
	ctx := &clockContext{Context: t.Context(), ends: 1} // it has begun, and no more
	wantIs(t, r.Put(ctx, token(1, ""), b("k"), b("v")), context.DeadlineExceeded)
	wantMark(t, r, fence.Token{})
	if ctx.asked < 2 {
		t.Errorf("the context was asked %d times", ctx.asked)
	}
}

func TestContextThatEndsInTheFunctionAppliesNothing(t *testing.T) {
	r := open(t, nil).Resource("r")
	ctx, cancel := context.WithCancel(t.Context())
	err := r.Update(ctx, token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		cancel()
		return tx.Put(b("k"), b("v"))
	})
	wantIs(t, err, context.Canceled)
	wantMark(t, r, fence.Token{})
	wantNone(t, r, "k")
}

// ending is a context that ends without a timer when it was asked so many times, as
// that of a lease does whose process was stopped.
type ending struct {
	context.Context
	left int
}

func (c *ending) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestContextIsAskedAgainBeforeTheCommit(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	must(t, r.Raise(t.Context(), token(1, "")))
	asked := 0
	for ; ; asked++ {
		err := r.Put(&ending{t.Context(), asked}, token(1, ""), b("k"), b("v"))
		if err == nil {
			break
		}
		wantIs(t, err, context.DeadlineExceeded)
		_, err = r.Get(t.Context(), b("k"))
		wantIs(t, err, fencedkv.ErrNotFound)
	}
	if asked < 3 { // when the call began, when it was decided, and when it was applied
		t.Errorf("the context was asked %d times, want 3", asked)
	}
}
