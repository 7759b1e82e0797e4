package fencedkv_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

func newLocker(t *testing.T) *testLocker {
	l := &testLocker{validity: time.Hour}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("close the locker: %v", err)
		}
	})
	return l
}

func TestExclusiveRaisesBeforeItsFunctionRuns(t *testing.T) {
	r, l := open(t, nil).Resource("r"), newLocker(t)
	must(t, r.Exclusive(t.Context(), l, func(ctx context.Context, h *fencedkv.Held) error {
		if l.name != "r" {
			t.Errorf("the lock is named %q, want the resource's name", l.name)
		}
		if got, ok := fence.FromContext(ctx); !ok || got != h.Token() {
			t.Errorf("the context carries %v, want %v", got, h.Token())
		}
		if h.Lease().Token() != h.Token() {
			t.Error("the lease has another token")
		}
		m, err := h.Highest(ctx)
		if err != nil || m.Token != h.Token() {
			t.Errorf("Highest = %v, %v, want the lease's token", m, err)
		}
		return nil
	}))
}

func TestHeldReadsAndWrites(t *testing.T) {
	r, l := open(t, nil).Resource("r"), newLocker(t)
	must(t, r.Exclusive(t.Context(), l, func(ctx context.Context, h *fencedkv.Held) error {
		must(t, h.Put(ctx, b("k"), b("1")))
		must(t, h.Put(ctx, b("gone"), b("1")))
		must(t, h.Delete(ctx, b("gone")))
		if got, err := h.Get(ctx, b("k")); err != nil || string(got) != "1" {
			t.Errorf("Get = %q, %v, want 1", got, err)
		}
		must(t, h.Update(ctx, func(ctx context.Context, tx *fencedkv.Tx) error {
			wantIs(t, h.Put(ctx, b("k"), b("nested")), fencedkv.ErrNested)
			return tx.Put(b("k"), b("2"))
		}))
		return h.View(ctx, func(_ context.Context, tx *fencedkv.ReadTx) error {
			wantKeys(t, "View", keysOf(t, tx.Scan(fencedkv.Range{})), "k=2")
			return nil
		})
	}))
	wantValue(t, r, "k", "2")
}

func TestExclusiveReturnsItsFunctionsError(t *testing.T) {
	r, l := open(t, nil).Resource("r"), newLocker(t)
	own := errors.New("own")
	wantIs(t, r.Exclusive(t.Context(), l, func(context.Context, *fencedkv.Held) error { return own }), own)
}

func TestExclusiveReturnsTheRefusalAndReleases(t *testing.T) {
	r, l := open(t, nil).Resource("r"), newLocker(t)
	released := false
	l.released = func() error { released = true; return nil }
	must(t, r.Raise(t.Context(), fence.Token{Lineage: "test:r", Seq: 100, Holder: "later"}))
	err := r.Exclusive(t.Context(), l, func(context.Context, *fencedkv.Held) error {
		t.Error("the function ran with a refused token")
		return nil
	})
	wantIs(t, err, fence.ErrStale)
	if !released {
		t.Error("the lock was not released")
	}
}

func TestHeldDoesNotWriteAfterTheLeaseIsLost(t *testing.T) {
	s, l := open(t, nil), newLocker(t)
	r := s.Resource("r")
	err := r.Exclusive(t.Context(), l, func(ctx context.Context, h *fencedkv.Held) error {
		must(t, h.Put(ctx, b("k"), b("held")))
		l.lose()
		<-ctx.Done()
		ran := func(context.Context, *fencedkv.Tx) error { t.Error("the function of Update ran"); return nil }
		// A context that knows nothing of the lease.
		for name, err := range map[string]error{
			"Put":    h.Put(context.Background(), b("k"), b("late")),
			"Delete": h.Delete(context.Background(), b("k")),
			"Update": h.Update(context.Background(), ran),
		} {
			if !errors.Is(err, locks.ErrLost) || !errors.Is(err, context.Canceled) {
				t.Errorf("%s after the loss: got %v, want one over ErrLost and context.Canceled", name, err)
			}
		}
		if got, err := h.Get(context.Background(), b("k")); err != nil || string(got) != "held" {
			t.Errorf("Get after the loss = %q, %v, want the value", got, err)
		}
		return nil
	})
	wantIs(t, err, locks.ErrLost)
	wantValue(t, r, "k", "held")
}

func TestLossInTheQueueTakesTheWriteOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := open(t, nil), newLocker(t)
		r := s.Resource("r")
		err := r.Exclusive(t.Context(), l, func(ctx context.Context, h *fencedkv.Held) error {
			queued := make(chan error, 1)
			return s.Resource("other").Update(context.Background(), token(1, ""), func(context.Context, *fencedkv.Tx) error {
				go func() { queued <- h.Put(context.Background(), b("k"), b("late")) }()
				synctest.Wait() // it is in the queue
				l.lose()
				wantIs(t, <-queued, locks.ErrLost)
				return nil
			})
		})
		wantIs(t, err, locks.ErrLost)
		wantNone(t, r, "k")
	})
}

func TestLossInTheFunctionOfUpdateAppliesNothing(t *testing.T) {
	r, l := open(t, nil).Resource("r"), newLocker(t)
	err := r.Exclusive(t.Context(), l, func(ctx context.Context, h *fencedkv.Held) error {
		err := h.Update(context.Background(), func(_ context.Context, tx *fencedkv.Tx) error {
			l.lose()
			return tx.Put(b("k"), b("late"))
		})
		wantIs(t, err, locks.ErrLost)
		return nil
	})
	wantIs(t, err, locks.ErrLost)
	wantNone(t, r, "k")
}

// aheadOfDone is a context whose Err knows of its end before Done does, like
// that of a lease in a process that was stopped and wakes.
type aheadOfDone struct{ context.Context }

func (aheadOfDone) Err() error { return context.DeadlineExceeded }

func TestHeldAsksTheContextThatItIsGiven(t *testing.T) {
	r, l := open(t, nil).Resource("r"), newLocker(t)
	must(t, r.Exclusive(t.Context(), l, func(ctx context.Context, h *fencedkv.Held) error {
		wantIs(t, h.Put(aheadOfDone{ctx}, b("k"), b("late")), context.DeadlineExceeded)
		return nil
	}))
	wantNone(t, r, "k")
}

func TestExclusiveReleasesAfterTheWritesInFlight(t *testing.T) {
	s, l := open(t, nil), newLocker(t)
	r := s.Resource("r")
	l.released = func() error {
		if got, err := r.Get(context.Background(), b("k")); string(got) != "in flight" {
			t.Errorf("Get at the release = %q, %v, want the write that was in flight", got, err)
		}
		return nil
	}
	inside := make(chan struct{})
	must(t, r.Exclusive(t.Context(), l, func(ctx context.Context, h *fencedkv.Held) error {
		go func() {
			err := h.Update(context.Background(), func(_ context.Context, tx *fencedkv.Tx) error {
				close(inside)
				// Exclusive is in the middle of its end when nothing more is taken.
				for {
					if _, err := h.Highest(context.Background()); errors.Is(err, fencedkv.ErrTxDone) {
						break
					}
				}
				return tx.Put(b("k"), b("in flight"))
			})
			if err != nil {
				t.Errorf("the write in flight: %v", err)
			}
		}()
		<-inside
		return nil
	}))
	wantValue(t, r, "k", "in flight")
}

func TestHeldIsOverWithItsFunction(t *testing.T) {
	r, l := open(t, nil).Resource("r"), newLocker(t)
	var h *fencedkv.Held
	must(t, r.Exclusive(t.Context(), l, func(_ context.Context, in *fencedkv.Held) error { h = in; return nil }))
	ctx := t.Context()
	_, get := h.Get(ctx, b("k"))
	_, highest := h.Highest(ctx)
	for name, err := range map[string]error{
		"Put": h.Put(ctx, b("k"), b("v")), "Delete": h.Delete(ctx, b("k")), "Get": get, "Highest": highest,
		"Update": h.Update(ctx, func(context.Context, *fencedkv.Tx) error { return nil }),
		"View":   h.View(ctx, func(context.Context, *fencedkv.ReadTx) error { return nil }),
	} {
		if !errors.Is(err, fencedkv.ErrTxDone) {
			t.Errorf("%s: got %v, want ErrTxDone", name, err)
		}
	}
	wantIs(t, h.Put(noContext, b("k"), b("v")), fencedkv.ErrArgument)
	wantNone(t, r, "k")
}

func TestZeroHeldIsAnError(t *testing.T) {
	var zero fencedkv.Held
	for _, h := range []*fencedkv.Held{&zero, nil} {
		wantIs(t, h.Put(t.Context(), b("k"), b("v")), fencedkv.ErrTxDone)
		if h.Token() != (fence.Token{}) || h.Lease() != nil {
			t.Error("a Held of nothing has a lease")
		}
	}
}

func TestCloseDoesNotWaitForExclusive(t *testing.T) {
	s, l := open(t, nil), newLocker(t)
	err := s.Resource("r").Exclusive(t.Context(), l, func(ctx context.Context, h *fencedkv.Held) error {
		must(t, s.Close()) // no transaction is open here
		return h.Put(ctx, b("k"), b("v"))
	})
	wantIs(t, err, fencedkv.ErrClosed)
}

func TestExclusivePassesPanicsOnAndReleases(t *testing.T) {
	r, l := open(t, nil).Resource("r"), newLocker(t)
	released := false
	l.released = func() error { released = true; return nil }
	const own = "the function's own"
	func() {
		defer func() {
			if got := recover(); got != own {
				t.Errorf("recovered %v, want the function's panic", got)
			}
		}()
		r.Exclusive(t.Context(), l, func(context.Context, *fencedkv.Held) error { panic(own) })
	}()
	if !released {
		t.Error("the lock was not released")
	}
}

func TestExclusiveHoldersComeOneAfterTheOther(t *testing.T) {
	r, l := open(t, nil).Resource("r"), newLocker(t)
	// The locker grants at once, so that only the store keeps the order.
	var wg sync.WaitGroup
	var writes atomic.Int64
	for range 8 {
		wg.Go(func() {
			err := r.Exclusive(context.Background(), l, func(ctx context.Context, h *fencedkv.Held) error {
				err := h.Update(ctx, func(_ context.Context, tx *fencedkv.Tx) error {
					old, err := tx.Get(b("log"))
					if err != nil && !errors.Is(err, fencedkv.ErrNotFound) {
						return err
					}
					return tx.Put(b("log"), append(old, byte(h.Token().Seq)))
				})
				if err == nil {
					writes.Add(1)
				}
				return err
			})
			if err != nil && !errors.Is(err, fence.ErrStale) {
				t.Errorf("got %v, want nil or a stale token", err)
			}
		})
	}
	wg.Wait()
	got, err := r.Get(t.Context(), b("log"))
	must(t, err)
	if int64(len(got)) != writes.Load() {
		t.Errorf("%d updates succeeded and %d are there", writes.Load(), len(got))
	}
	for i := 1; i < len(got); i++ {
		if got[i] <= got[i-1] {
			t.Errorf("tokens %v were admitted, want them to rise", got)
		}
	}
}
