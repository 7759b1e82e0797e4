package fencedkv_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func TestFirstWritersOfOneTokenAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		v := &testVerifier{before: func(context.Context) { <-gate }}
		s := openVerified(t, v)
		v.grant("r", token(5, "b"))
		v.grant("q", token(6, "c"))
		var writers []*pending
		for i := range 64 {
			writers = append(writers, queue(func() error {
				return s.Resource("r").Put(t.Context(), token(5, "b"), []byte{byte(i)}, b("v"))
			}))
		}
		other := queue(func() error { return s.Resource("q").Raise(t.Context(), token(6, "c")) })
		forged := queue(func() error { return s.Resource("r").Raise(t.Context(), token(5, "x")) })
		if n := v.questions(); n != 3 {
			t.Errorf("%d questions, want one for 64 writers of one token and one for each of the others", n)
		}
		close(gate)
		for _, w := range writers {
			must(t, w.wait())
		}
		must(t, other.wait())
		if err := forged.wait(); !errors.Is(err, fence.ErrNotGranted) && !errors.Is(err, fence.ErrCollision) {
			t.Errorf("another holder's token: got %v, want a refusal of its own", err)
		}
	})
}

// The writers come while answers arrive and marks are raised.
func TestFirstWritersAskOnceAtAnyMoment(t *testing.T) {
	v := &testVerifier{}
	s := openVerified(t, v)
	r := s.Resource("r")
	for n := range uint64(50) {
		v.grant("r", token(n+1, "h"))
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 64 {
			all.Go(func() {
				<-start
				if err := r.Raise(t.Context(), token(n+1, "h")); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		all.Wait()
		if n := v.questions(); n != 1 {
			t.Fatalf("%d questions for 64 first writers, want 1", n)
		}
	}
}

func TestWhoeverLookedBeforeTheRaiseAsksNobody(t *testing.T) {
	v := &testVerifier{}
	s := openVerified(t, v)
	tok := token(5, "b")
	v.grant("r", tok)
	must(t, s.Resource("r").Raise(t.Context(), tok))
	needed, err := s.AskLate(t.Context(), "r", tok)
	if n := v.questions(); err != nil || needed || n != 1 {
		t.Errorf("%d questions, the last one needed: %t, error %v; want the first one only", n, needed, err)
	}
	if needed, err := s.AskLate(t.Context(), "r", token(6, "c")); !needed || !errors.Is(err, fence.ErrNotGranted) {
		t.Errorf("a higher token: needed %t, error %v, want that it is asked about and refused", needed, err)
	}
}

func TestACallThatEndsTakesNoAnswerFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		v := &testVerifier{before: func(ctx context.Context) {
			select {
			case <-gate:
			case <-ctx.Done():
			}
		}}
		s := openVerified(t, v)
		r := s.Resource("r")
		tok := token(5, "b")
		v.grant("r", tok)
		first, cancel := context.WithCancel(t.Context())
		gone := queue(func() error { return r.Raise(first, tok) })
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		late := queue(func() error { return r.Raise(short, tok) })
		stays := queue(func() error { return r.Raise(t.Context(), tok) })

		cancel()
		err := gone.wait()
		wantUnverified(t, err, fence.ErrNoAnswer, tok, fence.Token{})
		wantIs(t, err, context.Canceled)
		err = late.wait()
		wantUnverified(t, err, fence.ErrNoAnswer, tok, fence.Token{})
		wantIs(t, err, context.DeadlineExceeded)
		if stays.over() {
			t.Fatal("the call that stays has ended with those that left")
		}
		close(gate)
		must(t, stays.wait())
		if n := v.questions(); n != 1 {
			t.Errorf("%d questions, want 1", n)
		}
	})
}

func TestAQuestionEndsWithTheLastCallThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		v := &testVerifier{before: func(ctx context.Context) { <-ctx.Done(); ended++ }}
		s := openVerified(t, v)
		r := s.Resource("r")
		tok := token(5, "b")
		ctx, cancel := context.WithCancel(t.Context())
		a := queue(func() error { return r.Raise(ctx, tok) })
		c := queue(func() error { return r.Raise(ctx, tok) })
		cancel()
		wantIs(t, a.wait(), context.Canceled)
		wantIs(t, c.wait(), context.Canceled)
		synctest.Wait()
		if n := v.questions(); n != 1 || ended != 1 {
			t.Errorf("%d questions, of which %d have ended, want one that has", n, ended)
		}
		// The next call does not get the answer of a question that was given up.
		v.before = nil
		v.grant("r", tok)
		must(t, r.Raise(t.Context(), tok))
	})
}

func TestCloseEndsQuestions(t *testing.T) {
	asked := make(chan struct{})
	v := &testVerifier{before: func(ctx context.Context) {
		close(asked)
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Error("the question goes on after Close has begun")
		}
	}}
	s, err := fencedkv.Open(filepath.Join(t.TempDir(), "s.db"), &fencedkv.Options{Verifiers: []fence.Verifier{v}})
	must(t, err)
	result := make(chan error)
	go func() { result <- s.Resource("r").Raise(t.Context(), token(5, "b")) }()
	<-asked
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	wantIs(t, <-result, fencedkv.ErrClosed)
	must(t, <-closed)
}

func TestCloseWaitsForVerifiers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		v := &testVerifier{before: func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
		}}
		s, err := fencedkv.Open(filepath.Join(t.TempDir(), "s.db"), &fencedkv.Options{Verifiers: []fence.Verifier{v}})
		must(t, err)
		waits := queue(func() error { return s.Resource("r").Raise(t.Context(), token(5, "b")) })
		must(t, s.Close())
		if !ended {
			t.Error("Close has returned while a verifier was asked")
		}
		wantIs(t, waits.wait(), fencedkv.ErrClosed)
	})
}

func TestATransactionThatIsTooLargeAsksNobody(t *testing.T) {
	v := &testVerifier{}
	s := openVerified(t, v)
	claims := largeClaims(fencedkv.MaxTransaction/leastLargeClaim+1, "r")
	err := s.Update(t.Context(), claims, func(context.Context, *fencedkv.MultiTx) error { return nil })
	wantIs(t, err, fencedkv.ErrTooLarge)
	if n := v.questions(); n != 0 {
		t.Errorf("%d questions, want none", n)
	}
}

func TestAnAnswerIsNotKept(t *testing.T) {
	v := &testVerifier{}
	s := openVerified(t, v)
	r := s.Resource("r")
	tok := token(5, "b")
	own := errors.New("the function's")
	for name, update := range map[string]func(context.Context, *fencedkv.Tx) error{
		"an error": func(context.Context, *fencedkv.Tx) error { return own },
		"a panic":  func(context.Context, *fencedkv.Tx) error { panic(own) },
	} {
		v.grant("r", tok)
		func() {
			defer func() { _ = recover() }()
			if err := r.Update(t.Context(), tok, update); !errors.Is(err, own) {
				t.Errorf("Update: got %v, want the function's error", err)
			}
		}()
		v.grant("r", token(6, "c"))
		err := r.Raise(t.Context(), tok)
		if !errors.Is(err, fence.ErrNotGranted) {
			t.Fatalf("after %s of the first call: got %v, want the refusal of a new question", name, err)
		}
		if n := v.questions(); n != 2 {
			t.Errorf("after %s: %d questions, want 2", name, n)
		}
	}
	// Nor is a refusal.
	v.grant("r", tok)
	must(t, r.Raise(t.Context(), tok))
}

func TestAVerifierCannotUseTheStore(t *testing.T) {
	var s *fencedkv.Store
	s = openVerified(t, verifierFunc(func(ctx context.Context, resource string, tok fence.Token) error {
		for what, ctx := range map[string]context.Context{"its context": ctx, "another context": context.Background()} {
			ctx, cancel := context.WithTimeout(ctx, time.Second) // it would wait for itself
			defer cancel()
			if err := s.Resource(resource).Raise(ctx, tok); !errors.Is(err, fencedkv.ErrNested) {
				t.Errorf("a write of the verifier with %s: got %v, want ErrNested", what, err)
				return nil
			}
		}
		if err := s.Close(); !errors.Is(err, fencedkv.ErrNested) {
			t.Errorf("Close: got %v, want ErrNested", err)
		}
		return nil
	}))
	must(t, s.Resource("r").Raise(t.Context(), token(1, "a")))
}

// The mark that a call looked at is another one when its turn comes.
func TestAMarkThatTurnsOutToBeRaisedIsAskedAboutThen(t *testing.T) {
	v := &testVerifier{}
	s := openVerified(t, v)
	r := s.Resource("r")
	tok, forged := token(5, "b"), token(9, "x")
	v.grant("r", tok)
	runs := 0
	fn := func(_ context.Context, tx *fencedkv.Tx) error { runs++; return tx.Put(b("l"), b("w")) }

	s.Needless("r", forged)
	wantUnverified(t, r.Put(t.Context(), forged, b("k"), b("forged")), fence.ErrNotGranted, forged, fence.Token{})
	s.Needless("r", forged)
	wantUnverified(t, r.Update(t.Context(), forged, fn), fence.ErrNotGranted, forged, fence.Token{})
	if n := v.questions(); n != 2 || runs != 0 {
		t.Errorf("%d questions, the function ran %d times, want 2 and never", n, runs)
	}
	s.Needless("r", tok)
	must(t, r.Put(t.Context(), tok, b("k"), b("v")))
	if n := v.questions(); n != 1 {
		t.Errorf("%d questions, want 1", n)
	}
	must(t, r.Update(t.Context(), tok, fn))
	wantValue(t, r, "k", "v")
	wantValue(t, r, "l", "w")
	wantMark(t, r, tok)
}
