package fencedkv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func transfer(ctx context.Context, s *fencedkv.Store, ta, tb fence.Token, value string) error {
	return s.Update(ctx, []fencedkv.Claim{{"b", tb}, {"a", ta}}, func(_ context.Context, tx *fencedkv.MultiTx) error {
		for _, name := range []string{"a", "b"} {
			r, err := tx.Resource(name)
			if err != nil {
				return err
			}
			if err := r.Put([]byte("k"), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestUpdateOfSeveralResourcesIsOne(t *testing.T) {
	s := open(t, nil)
	a, c := s.Resource("a"), s.Resource("b")
	must(t, transfer(t.Context(), s, token(1, "x"), token(7, "y"), "both"))
	for r, want := range map[*fencedkv.Resource]fence.Token{a: token(1, "x"), c: token(7, "y")} {
		wantValue(t, r, "k", "both")
		wantMark(t, r, want)
	}
}

func TestOneRefusalRaisesNone(t *testing.T) {
	s := open(t, nil)
	a, c := s.Resource("a"), s.Resource("b")
	must(t, a.Raise(t.Context(), token(5, "x")))
	must(t, c.Raise(t.Context(), token(5, "x")))
	refusals := map[string][2]uint64{"a": {4, 6}, "b": {6, 4}}
	for name, n := range refusals {
		err := transfer(t.Context(), s, token(n[0], "y"), token(n[1], "y"), "late")
		var rejected *fence.RejectedError
		if !errors.As(err, &rejected) || rejected.Resource != name {
			t.Errorf("got %v, want a refusal by %s", err, name)
		}
	}
	// Both would refuse: the first by name answers.
	var rejected *fence.RejectedError
	if err := transfer(t.Context(), s, token(4, "y"), token(4, "y"), "late"); !errors.As(err, &rejected) || rejected.Resource != "a" {
		t.Errorf("got %v, want a refusal by a", err)
	}
	for _, r := range []*fencedkv.Resource{a, c} {
		wantMark(t, r, token(5, "x"))
		wantNone(t, r, "k")
	}
}

func TestTransactionReachesOnlyItsClaims(t *testing.T) {
	s := open(t, nil)
	must(t, s.Update(t.Context(), []fencedkv.Claim{{"a", token(1, "x")}}, func(_ context.Context, tx *fencedkv.MultiTx) error {
		_, err := tx.Resource("b")
		wantIs(t, err, fencedkv.ErrNotClaimed)
		r, err := tx.Resource("a")
		if err != nil || r.Resource() != "a" || r.Token() != token(1, "x") {
			t.Errorf("Resource(a) = %v, %v", r, err)
		}
		return nil
	}))
}

func TestResourcesOfOneTransactionAreApart(t *testing.T) {
	s := open(t, nil)
	claims := []fencedkv.Claim{{"a", token(1, "")}, {"ab", token(1, "")}}
	must(t, s.Update(t.Context(), claims, func(_ context.Context, tx *fencedkv.MultiTx) error {
		a, err := tx.Resource("a")
		must(t, err)
		ab, err := tx.Resource("ab")
		must(t, err)
		must(t, a.Put(b("bk"), b("a")))
		must(t, ab.Put(b("k"), b("ab")))
		wantKeys(t, "a", keysOf(t, a.Scan(fencedkv.Range{})), "bk=a")
		wantKeys(t, "ab", keysOf(t, ab.Scan(fencedkv.Range{})), "k=ab")
		return nil
	}))
	wantValue(t, s.Resource("a"), "bk", "a")
	wantValue(t, s.Resource("ab"), "k", "ab")
}
