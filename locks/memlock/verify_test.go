package memlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// wantNot wants an answer with that reason and current grant.
func wantNot(t *testing.T, err, reason error, current fence.Token) {
	t.Helper()
	u, ok := errors.AsType[*fence.UnverifiedError](err)
	if !ok || !errors.Is(u.Reason, reason) || u.Current != current {
		t.Errorf("got %v, want a *fence.UnverifiedError for the reason %v with the current grant %v", err, reason, current)
	}
}

func TestOnlyTheCurrentGrantIsVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memlock.NewServer(nil)
		l, err := server.NewLocker(nil)
		if err != nil {
			t.Fatal(err)
		}
		other, err := memlock.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(context.Background())
		defer other.Close(context.Background())
		first, err := l.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		beside, err := l.Acquire(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		tok := first.Token()
		if err := l.Verify(t.Context(), "a", tok); err != nil {
			t.Errorf("the holder's token: %v", err)
		}
		for _, forged := range []fence.Token{
			{Lineage: tok.Lineage, Seq: tok.Seq + 1, Holder: tok.Holder},
			{Lineage: tok.Lineage, Seq: tok.Seq, Holder: "somebody"},
			{Lineage: tok.Lineage, Seq: tok.Seq},
		} {
			wantNot(t, l.Verify(t.Context(), "a", forged), fence.ErrNotGranted, tok)
		}
		wantNot(t, l.Verify(t.Context(), "a", fence.Number(tok.Seq)), fence.ErrNoVerifier, fence.Token{})
		wantNot(t, l.Verify(t.Context(), "a", beside.Token()), fence.ErrNoVerifier, fence.Token{})
		wantNot(t, other.Verify(t.Context(), "a", tok), fence.ErrNoVerifier, fence.Token{})

		var next *locks.Lease
		go func() { next, _ = l.Acquire(context.Background(), "a") }()
		synctest.Wait()
		waiter := fence.Token{Lineage: tok.Lineage, Seq: tok.Seq + 2, Holder: server.Entries("a")[1].ID}
		wantNot(t, l.Verify(t.Context(), "a", waiter), fence.ErrNotGranted, tok)
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantNot(t, l.Verify(t.Context(), "a", tok), fence.ErrNotGranted, next.Token())
		server.Expire("a")
		wantNot(t, l.Verify(t.Context(), "a", next.Token()), fence.ErrNotGranted, fence.Token{})
		_ = next.Release(t.Context())
	})
}

// mute is a Backend whose server does not answer a Verify.
type mute struct {
	*memlock.Server
	asked chan struct{}
}

func (b mute) Verify(ctx context.Context, _ string, _ fence.Token) error {
	close(b.asked)
	<-ctx.Done()
	return ctx.Err()
}

func TestVerifyOfABackendThatDoesNotAnswer(t *testing.T) {
	tok := fence.Token{Lineage: "mem:x:a", Seq: 1, Holder: "h"}
	verify := func(t *testing.T, b memlock.Backend, how func(l *memlock.Locker, cancel func())) error {
		l, err := memlock.NewLocker(b, &memlock.Options{TTL: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(context.Background())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		how(l, cancel)
		err = l.Verify(ctx, "a", tok)
		wantNot(t, err, fence.ErrNoAnswer, fence.Token{})
		return err
	}
	for name, c := range map[string]struct {
		how  func(l *memlock.Locker, b mute, cancel func())
		want error
	}{
		"in time":             {func(*memlock.Locker, mute, func()) {}, locks.ErrUnreachable},
		"before ctx ends":     {func(_ *memlock.Locker, b mute, cancel func()) { go func() { <-b.asked; cancel() }() }, context.Canceled},
		"before the Close":    {func(l *memlock.Locker, b mute, _ func()) { go func() { <-b.asked; l.Close(context.Background()) }() }, locks.ErrClosed},
		"because it is over":  {func(l *memlock.Locker, _ mute, _ func()) { l.Close(context.Background()) }, locks.ErrClosed},
		"for a call that was": {func(_ *memlock.Locker, _ mute, cancel func()) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := mute{memlock.NewServer(nil), make(chan struct{})}
				err := verify(t, b, func(l *memlock.Locker, cancel func()) { c.how(l, b, cancel) })
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want an error over %v", err, c.want)
				}
			})
		})
	}
	// A Backend from before there was a Verify.
	verify(t, struct{ memlock.Backend }{memlock.NewServer(nil)}, func(*memlock.Locker, func()) {})
}

// The timer that ends a lease may be late.
func TestALeaseThatHasRunOutIsNotVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memlock.NewServer(nil)
		tok, err := server.Take(t.Context(), memlock.Attempt{Name: "a", ID: "h", TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 { // of the timers for this moment one may be the first
			asked := time.NewTimer(time.Second)
			<-asked.C
			wantNot(t, server.Verify(t.Context(), "a", tok), fence.ErrNotGranted, fence.Token{})
			if tok, err = server.Take(t.Context(), memlock.Attempt{Name: "a", ID: locks.NewHolder(), TTL: time.Second}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
