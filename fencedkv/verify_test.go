package fencedkv_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

func TestARaiseNeedsTheAnswerOfTheLockService(t *testing.T) {
	v := &testVerifier{}
	s := openVerified(t, v)
	r := s.Resource("r")
	v.grant("r", token(5, "b"))

	forged := token(1<<62, "x")
	u := wantUnverified(t, r.Raise(t.Context(), forged), fence.ErrNotGranted, forged, fence.Token{})
	if u.Current != token(5, "b") {
		t.Errorf("the refusal names %v as the current grant, want %v", u.Current, token(5, "b"))
	}
	wantMark(t, r, fence.Token{})
	must(t, r.Put(t.Context(), token(5, "b"), b("k"), b("v")))
	wantMark(t, r, token(5, "b"))
	wantUnverified(t, r.Put(t.Context(), forged, b("k"), b("forged")), fence.ErrNotGranted, forged, token(5, "b"))
	wantUnverified(t, r.Delete(t.Context(), forged, b("k")), fence.ErrNotGranted, forged, token(5, "b"))
	ran := false
	err := r.Update(t.Context(), forged, func(context.Context, *fencedkv.Tx) error { ran = true; return nil })
	wantUnverified(t, err, fence.ErrNotGranted, forged, token(5, "b"))
	if ran {
		t.Error("the function of a token that is not verified ran")
	}
	wantValue(t, r, "k", "v")
	wantMark(t, r, token(5, "b"))
}

func TestAWriteThatDoesNotRaiseAsksNobody(t *testing.T) {
	v := &testVerifier{}
	s := openVerified(t, v)
	r := s.Resource("r")
	v.grant("r", token(5, "b"))
	must(t, r.Raise(t.Context(), token(5, "b")))
	if n := v.questions(); n != 1 {
		t.Fatalf("%d questions for the first write, want 1", n)
	}

	// The mark stays raised, whatever becomes of the grant.
	v.grant("r", token(6, "c"))
	must(t, r.Put(t.Context(), token(5, "b"), b("k"), b("v")))
	must(t, r.Delete(t.Context(), token(5, "b"), b("k")))
	must(t, r.Raise(t.Context(), token(5, "b")))
	must(t, r.Update(t.Context(), token(5, "b"), func(context.Context, *fencedkv.Tx) error { return nil }))
	// What order refuses needs no other reason.
	wantIs(t, r.Raise(t.Context(), token(4, "a")), fence.ErrStale)
	wantIs(t, r.Raise(t.Context(), token(5, "x")), fence.ErrCollision)
	wantIs(t, r.Raise(t.Context(), fence.Number(9)), fence.ErrLineage)
	wantIs(t, r.Raise(t.Context(), fence.Token{}), fence.ErrNoToken)
	if n := v.questions(); n != 0 {
		t.Errorf("%d questions, want none", n)
	}
}

func TestAVerifierIsChosenByLineage(t *testing.T) {
	mine := func(lineage string, n uint64) fence.Token { return fence.Token{Lineage: lineage, Seq: n, Holder: "h"} }
	away := errors.New("connection refused")
	unreachable := func(context.Context) error { return away }
	one, two := &testVerifier{lineage: "one"}, &testVerifier{lineage: "two"}
	down := &testVerifier{lineage: "two", answer: unreachable} // another cluster of that name
	s := openVerified(t, one, down, two)
	r := s.Resource("r")

	two.grant("r", mine("two", 7))
	must(t, r.Raise(t.Context(), mine("two", 7)))
	if a, b, c := one.questions(), down.questions(), two.questions(); a != 0 || b != 1 || c != 1 {
		t.Errorf("the verifiers were asked %d, %d and %d times, want the two that know the lineage once each", a, b, c)
	}
	q := s.Resource("q")
	for _, unknown := range []fence.Token{mine("three", 1), fence.Number(1), {Seq: 1, Holder: "h"}} {
		wantUnverified(t, q.Raise(t.Context(), unknown), fence.ErrNoVerifier, unknown, fence.Token{})
	}
	if a, b, c := one.questions(), down.questions(), two.questions(); a+b+c != 0 {
		t.Errorf("%d questions about unknown lineages, want none", a+b+c)
	}
	// A service that says no is believed; one that says nothing is not.
	wantUnverified(t, q.Raise(t.Context(), mine("one", 1)), fence.ErrNotGranted, mine("one", 1), fence.Token{})
	two.answer = func(context.Context) error {
		return &fence.UnverifiedError{Reason: fence.ErrNoVerifier, Offered: mine("two", 1), Err: errors.New("another numbering")}
	}
	err := q.Raise(t.Context(), mine("two", 1))
	wantUnverified(t, err, fence.ErrNoAnswer, mine("two", 1), fence.Token{})
	wantIs(t, err, away)
}

func TestTheReasonOfAVerifierReachesTheCaller(t *testing.T) {
	away := &locks.Error{Op: "verify", Name: "r", Kind: locks.ErrUnreachable, Err: errors.New("connection refused")}
	tok := token(3, "h")
	for name, c := range map[string]struct {
		answer func(context.Context) error
		reason error
		is     error
		text   string
	}{
		"unreachable": {
			func(context.Context) error {
				return &fence.UnverifiedError{Resource: "r", Offered: tok, Reason: fence.ErrNoAnswer, Err: away}
			}, fence.ErrNoAnswer, locks.ErrUnreachable, "connection refused",
		},
		"an error of its own":  {func(context.Context) error { return away }, fence.ErrNoAnswer, locks.ErrUnreachable, "connection refused"},
		"a reason in an error": {func(context.Context) error { return errors.Join(fence.ErrNotGranted, away) }, fence.ErrNotGranted, away, "refused"},
		"a lineage, asked for": {func(context.Context) error { return fence.ErrNoVerifier }, fence.ErrNoVerifier, fence.ErrUnverified, "lineage"},
		"no reason":            {func(context.Context) error { return &fence.UnverifiedError{Offered: tok} }, fence.ErrNoAnswer, fence.ErrUnverified, "try again"},
		"a panic":              {func(context.Context) error { panic("of the verifier") }, fence.ErrNoAnswer, fence.ErrUnverified, "panicked: of the verifier"},
		"an exit":              {func(context.Context) error { runtime.Goexit(); return nil }, fence.ErrNoAnswer, fence.ErrUnverified, "did not return"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openVerified(t, &testVerifier{answer: c.answer})
			err := s.Resource("r").Raise(t.Context(), tok)
			wantUnverified(t, err, c.reason, tok, fence.Token{})
			wantIs(t, err, c.is)
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("the error says %q, want %q in it", err, c.text)
			}
			wantMark(t, s.Resource("r"), fence.Token{})
		})
	}
}

func TestSeveralClaimsAreVerifiedAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		v := &testVerifier{before: func(context.Context) { <-gate }}
		s := openVerified(t, v)
		claims := []fencedkv.Claim{{Resource: "a", Token: token(1, "a")}, {Resource: "b", Token: token(2, "b")}, {Resource: "c", Token: token(3, "c")}}
		for _, c := range claims {
			v.grant(c.Resource, c.Token)
		}
		raised := queue(func() error { return s.Resource("b").Raise(t.Context(), token(2, "b")) })
		gate <- struct{}{}
		must(t, raised.wait())

		runs := 0
		update := func() *pending {
			return queue(func() error {
				return s.Update(t.Context(), claims, func(context.Context, *fencedkv.MultiTx) error { runs++; return nil })
			})
		}
		v.grant("c", token(4, "d"))
		v.questions()
		refused := update()
		if n := v.questions(); n != 2 {
			t.Errorf("%d questions at once, want those of the two claims that raise", n)
		}
		close(gate)
		wantUnverified(t, refused.wait(), fence.ErrNotGranted, token(3, "c"), fence.Token{})
		wantMark(t, s.Resource("a"), fence.Token{})
		wantMark(t, s.Resource("c"), fence.Token{})
		if runs != 0 {
			t.Errorf("the function ran %d times without the answer, want never", runs)
		}
		v.grant("c", token(3, "c"))
		must(t, update().wait())
		wantMark(t, s.Resource("a"), token(1, "a"))
		wantMark(t, s.Resource("c"), token(3, "c"))
	})
}

func TestOrderDecidesBetweenAnswerAndCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := map[fence.Token]chan struct{}{token(5, "b"): make(chan struct{}), token(7, "d"): make(chan struct{})}
		s := openVerified(t, verifierFunc(func(_ context.Context, _ string, tok fence.Token) error {
			<-gates[tok] // both were the current grant, each at its time
			return nil
		}))
		r := s.Resource("r")
		older := queue(func() error { return r.Put(t.Context(), token(5, "b"), b("k"), b("older")) })
		newer := queue(func() error { return r.Put(t.Context(), token(7, "d"), b("k"), b("newer")) })
		close(gates[token(7, "d")])
		must(t, newer.wait())
		close(gates[token(5, "b")])
		wantIs(t, older.wait(), fence.ErrStale)
		wantValue(t, r, "k", "newer")
		wantMark(t, r, token(7, "d"))
	})
}

// verifierFunc is a Verifier.
type verifierFunc func(context.Context, string, fence.Token) error

func (f verifierFunc) Verify(ctx context.Context, resource string, t fence.Token) error {
	return f(ctx, resource, t)
}

func TestExclusiveWithVerification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memlock.NewServer(nil)
		locker, err := server.NewLocker(nil)
		must(t, err)
		defer func() { must(t, locker.Close(context.WithoutCancel(t.Context()))) }()
		s := openVerified(t, locker)
		r := s.Resource("accounts/42")
		var before fence.Token
		must(t, r.Exclusive(t.Context(), locker, func(ctx context.Context, h *fencedkv.Held) error {
			before = h.Token()
			return h.Put(ctx, b("balance"), b("100"))
		}))
		wantMark(t, r, before)

		// The file is an older copy: order alone would let a released token in.
		old := openVerified(t, locker).Resource("accounts/42")
		u := wantUnverified(t, old.Put(t.Context(), before, b("balance"), b("0")), fence.ErrNotGranted, before, fence.Token{})
		if !u.Current.IsZero() {
			t.Errorf("the refusal names %v as the current grant, want none", u.Current)
		}

		// A grant that the service has taken back is refused at the first write.
		lease, err := locker.Acquire(t.Context(), "accounts/42")
		must(t, err)
		server.Expire("accounts/42")
		wantUnverified(t, r.Raise(t.Context(), lease.Token()), fence.ErrNotGranted, lease.Token(), before)
		_ = lease.Release(t.Context())
	})
}

func TestHooksHearOfVerifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVerifier{before: func(context.Context) { time.Sleep(time.Second) }}
		var heard []fencedkv.VerificationInfo
		s := openAt(t, filepath.Join(t.TempDir(), "s.db"), &fencedkv.Options{Verifiers: []fence.Verifier{v}, Hooks: fencedkv.Hooks{
			Verification: func(i fencedkv.VerificationInfo) { heard = append(heard, i) },
		}})
		v.grant("r", token(2, "b"))
		first := queue(func() error { return s.Resource("r").Raise(t.Context(), token(2, "b")) })
		must(t, s.Resource("r").Raise(t.Context(), token(2, "b")))
		must(t, first.wait())
		must(t, s.Resource("r").Raise(t.Context(), token(2, "b")))
		wantIs(t, s.Resource("r").Raise(t.Context(), token(3, "c")), fence.ErrNotGranted)
		if len(heard) != 2 {
			t.Fatalf("the hook heard %v, want two verifications", heard)
		}
		if got := heard[0]; got != (fencedkv.VerificationInfo{Resource: "r", Token: token(2, "b"), Latency: time.Second}) || !strings.Contains(got.String(), "confirmed") {
			t.Errorf("the hook heard %v, want that token 2 was confirmed", got)
		}
		if got := heard[1]; !errors.Is(got.Err, fence.ErrNotGranted) || !strings.Contains(got.String(), "not the current grant") {
			t.Errorf("the hook heard %v, want that token 3 was not", got)
		}
	})
}

func TestVerifiersThatAreNilAreRefused(t *testing.T) {
	for _, none := range []fence.Verifier{nil, (*testVerifier)(nil)} {
		_, err := fencedkv.Open(filepath.Join(t.TempDir(), "s.db"), &fencedkv.Options{Verifiers: []fence.Verifier{none}})
		wantIs(t, err, fencedkv.ErrArgument)
	}
}
