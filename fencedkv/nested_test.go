package fencedkv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
)

func TestCallsFromWithinAFunctionAreNested(t *testing.T) {
	others := make([]*fencedkv.Store, 9)
	for i := range others {
		others[i] = open(t, nil)
		must(t, others[i].Resource("r").View(t.Context(), func(context.Context, *fencedkv.ReadTx) error { return nil }))
	}
	s, other := others[4], others[7]
	r := s.Resource("r")
	run := map[string]func(fn func(context.Context) error) error{
		"Update": func(fn func(context.Context) error) error {
			return r.Update(t.Context(), token(1, ""), func(ctx context.Context, _ *fencedkv.Tx) error { return fn(ctx) })
		},
		"View": func(fn func(context.Context) error) error {
			return r.View(t.Context(), func(ctx context.Context, _ *fencedkv.ReadTx) error { return fn(ctx) })
		},
		"Store.Update": func(fn func(context.Context) error) error {
			return s.Update(t.Context(), []fencedkv.Claim{{"x", token(1, "")}},
				func(ctx context.Context, _ *fencedkv.MultiTx) error { return fn(ctx) })
		},
	}
	for outer, within := range run {
		must(t, within(func(ctx context.Context) error {
			for inner, call := range everyCall(s) {
				if err := call(ctx); !errors.Is(err, fencedkv.ErrNested) {
					t.Errorf("%s within %s: got %v, want ErrNested", inner, outer, err)
				}
				derived, cancel := context.WithCancel(ctx)
				if err := call(derived); !errors.Is(err, fencedkv.ErrNested) {
					t.Errorf("%s within %s, derived context: got %v, want ErrNested", inner, outer, err)
				}
				cancel()
				if err := call(context.Background()); !errors.Is(err, fencedkv.ErrNested) {
					t.Errorf("%s within %s, another context: got %v, want ErrNested", inner, outer, err)
				}
			}
			if err := s.Close(); !errors.Is(err, fencedkv.ErrNested) {
				t.Errorf("Close within %s: got %v, want ErrNested", outer, err)
			}
			// Nor is another goroutine one that the function runs on.
			read := make(chan error)
			go func() { _, err := r.Highest(context.Background()); read <- err }()
			if err := <-read; err != nil {
				t.Errorf("Highest on another goroutine within %s: %v", outer, err)
			}
			// Another store is none of this one's business, also while it runs
			// something itself.
			for _, other := range others {
				if other == s {
					continue
				}
				inside, over := make(chan struct{}), make(chan struct{})
				ended := make(chan error)
				go func() {
					ended <- other.Resource("r").View(context.Background(), func(context.Context, *fencedkv.ReadTx) error {
						close(inside)
						<-over
						return nil
					})
				}()
				<-inside
				if err := other.Resource("r").Put(ctx, token(1, ""), b("k"), b("v")); err != nil {
					t.Errorf("Put to another store within %s: %v", outer, err)
				}
				close(over)
				must(t, <-ended)
			}
			// And what is nested in it is found through it.
			return other.Resource("r").View(ctx, func(context.Context, *fencedkv.ReadTx) error {
				return deep(100, func() error {
					if err := r.Put(context.Background(), token(1, ""), b("k"), b("v")); !errors.Is(err, fencedkv.ErrNested) {
						t.Errorf("Put within %s, through another store: got %v, want ErrNested", outer, err)
					}
					return nil
				})
			})
		}))
	}
	must(t, r.Put(t.Context(), token(1, ""), b("k"), b("v")))
}

// deep calls fn under so many frames.
func deep(frames int, fn func() error) error {
	if frames == 0 {
		return fn()
	}
	return errors.Join(deep(frames-1, fn))
}
