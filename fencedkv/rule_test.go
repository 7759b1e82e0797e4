package fencedkv_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// writers is every way to write, each with what it does on success.
func writers(r *fencedkv.Resource, s *fencedkv.Store) map[string]func(context.Context, fence.Token) error {
	return map[string]func(context.Context, fence.Token) error{
		"Raise":  func(ctx context.Context, t fence.Token) error { return r.Raise(ctx, t) },
		"Put":    func(ctx context.Context, t fence.Token) error { return r.Put(ctx, t, b("k"), b(t.String())) },
		"Delete": func(ctx context.Context, t fence.Token) error { return r.Delete(ctx, t, b("k")) },
		"Update": func(ctx context.Context, t fence.Token) error {
			return r.Update(ctx, t, func(_ context.Context, tx *fencedkv.Tx) error { return tx.Put(b("k"), b(t.String())) })
		},
		"Store.Update": func(ctx context.Context, t fence.Token) error {
			return s.Update(ctx, []fencedkv.Claim{{r.Name(), t}}, func(_ context.Context, mtx *fencedkv.MultiTx) error {
				tx, err := mtx.Resource(r.Name())
				if err != nil {
					return err
				}
				return tx.Put(b("k"), b(t.String()))
			})
		},
	}
}

func TestEveryWriteKeepsTheRule(t *testing.T) {
	high := fence.Token{Lineage: "l", Seq: 34, Holder: "b"}
	cases := []struct {
		name    string
		offered fence.Token
		want    error // nil: admitted
		reason  string
	}{
		{"no token", fence.Token{}, fence.ErrNoToken, "a write without a token is refused"},
		{"bad token", fence.Token{Seq: 35, Holder: strings.Repeat("x", fence.MaxHolder+1)}, fence.ErrBadToken, "a part is too long"},
		{"other lineage", fence.Token{Lineage: "m", Seq: 35, Holder: "c"}, fence.ErrLineage, "numberings cannot be compared"},
		{"bare number", fence.Number(99), fence.ErrLineage, "a bare number is a lineage of its own"},
		{"lower", fence.Token{Lineage: "l", Seq: 33, Holder: "a"}, fence.ErrStale, "a later holder has written"},
		{"lower, same holder", fence.Token{Lineage: "l", Seq: 33, Holder: "b"}, fence.ErrStale, "a later grant has written"},
		{"equal, other holder", fence.Token{Lineage: "l", Seq: 34, Holder: "a"}, fence.ErrCollision, "the first to arrive keeps the number"},
		{"equal, no holder", fence.Token{Lineage: "l", Seq: 34}, fence.ErrCollision, "no holder is another holder"},
		{"equal", high, nil, "a holder writes many times"},
		{"higher", fence.Token{Lineage: "l", Seq: 35, Holder: "c"}, nil, "the next holder has come"},
	}
	for _, c := range cases {
		for name := range writers(nil, nil) {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				s := open(t, nil)
				r := s.Resource("r")
				must(t, r.Put(t.Context(), high, b("k"), b("first")))
				before, err := r.Highest(t.Context())
				must(t, err)

				err = writers(r, s)[name](t.Context(), c.offered)
				if c.want == nil {
					if err != nil {
						t.Fatalf("%s: got %v, want admitted", c.reason, err)
					}
					wantMark(t, r, c.offered)
					return
				}
				if !errors.Is(err, c.want) {
					t.Fatalf("%s: got %v, want %v", c.reason, err, c.want)
				}
				var rejected *fence.RejectedError
				if !errors.As(err, &rejected) {
					t.Fatalf("got %T, want a *fence.RejectedError", err)
				}
				if rejected.Resource != "r" || rejected.Offered != c.offered || rejected.Mark != before {
					t.Errorf("got %+v, want resource r, offered %v, mark %v", rejected, c.offered, before)
				}
				wantMark(t, r, high)
				wantValue(t, r, "k", "first")
			})
		}
	}
}

func TestFirstTokenBindsAResource(t *testing.T) {
	for name := range writers(nil, nil) {
		s := open(t, nil)
		r := s.Resource("r")
		wantMark(t, r, fence.Token{})
		must(t, writers(r, s)[name](t.Context(), token(9, "h")))
		wantMark(t, r, token(9, "h"))
	}
}

func TestRaiseShutsOutTheOldHolder(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	must(t, r.Put(t.Context(), token(33, "a"), b("k"), b("a")))
	must(t, r.Raise(t.Context(), token(34, "b")))
	wantIs(t, r.Put(t.Context(), token(33, "a"), b("k"), b("late")), fence.ErrStale)
	wantValue(t, r, "k", "a")
	must(t, r.Raise(t.Context(), token(34, "b")))
}

func TestResourcesHaveMarksOfTheirOwn(t *testing.T) {
	s := open(t, nil)
	must(t, s.Resource("a").Raise(t.Context(), token(50, "h")))
	must(t, s.Resource("ab").Raise(t.Context(), token(2, "h")))
	must(t, s.Resource("a\x00").Raise(t.Context(), fence.Number(1)))
	wantMark(t, s.Resource("a"), token(50, "h"))
	wantMark(t, s.Resource("ab"), token(2, "h"))
	wantMark(t, s.Resource("a\x00"), fence.Number(1))
	wantMark(t, s.Resource("b"), fence.Token{})
}

func TestMarkOutlivesEveryKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	r := s.Resource("r")
	must(t, r.Put(t.Context(), token(34, "b"), b("k"), b("v")))
	must(t, r.Delete(t.Context(), token(34, "b"), b("k")))
	must(t, s.Close())

	r = openAt(t, path, nil).Resource("r")
	wantNone(t, r, "k")
	wantMark(t, r, token(34, "b"))
	wantIs(t, r.Put(t.Context(), token(33, "a"), b("k"), b("v")), fence.ErrStale)
}

func TestNumbersAreExact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	numbers := []uint64{1, 1e14 + 1, 1<<53 - 1, 1<<53 + 1, math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64}
	for i, n := range numbers {
		s, err := fencedkv.Open(path, nil)
		must(t, err)
		r := s.Resource("r")
		must(t, r.Raise(t.Context(), token(n, "h")))
		must(t, s.Close())

		s, err = fencedkv.Open(path, nil)
		must(t, err)
		r = s.Resource("r")
		wantMark(t, r, token(n, "h"))
		if i > 0 {
			wantIs(t, r.Raise(t.Context(), token(n-1, "h")), fence.ErrStale)
		}
		must(t, s.Close())
	}
	checkFile(t, path)
}

func TestLongestTokenFits(t *testing.T) {
	r := open(t, nil).Resource("r")
	// Every byte takes three in the text form.
	long := fence.Token{
		Lineage: strings.Repeat("\xff", fence.MaxLineage),
		Seq:     math.MaxUint64,
		Holder:  strings.Repeat("\x00", fence.MaxHolder),
	}
	must(t, r.Raise(t.Context(), long))
	wantMark(t, r, long)
}
