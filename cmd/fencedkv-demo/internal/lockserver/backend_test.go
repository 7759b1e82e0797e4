package lockserver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/lockserver"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

const (
	secret   = "the secret"
	lock     = "accounts/42"
	ttl      = 500 * time.Millisecond
	patience = 20 * time.Second
)

// serve serves a memlock.Server until the test ends, and returns its address.
func serve(t *testing.T, o *memlock.ServerOptions) (*memlock.Server, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	server, url, done := memlock.NewServer(o), make(chan string, 1), make(chan error, 1)
	srv := loopback.NewServer(secret)
	lockserver.Register(srv, server)
	go func() {
		done <- srv.Serve(ctx, func(u string) error { url <- u; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return server, <-url
}

func newLocker(t *testing.T, url, secret string) *memlock.Locker {
	t.Helper()
	client := loopback.NewClient(url, secret)
	l, err := memlock.NewLocker(lockserver.NewBackend(client), &memlock.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		client.Close()
	})
	return l
}

func TestTwoProcessesExcludeEachOtherAndTheirTokensRise(t *testing.T) {
	server, url := serve(t, nil)
	a, b := newLocker(t, url, secret), newLocker(t, url, secret)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first, err := a.Acquire(ctx, lock)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.TryAcquire(ctx, lock); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("TryAcquire of a held lock = %v, want an error over ErrHeld", err)
	}

	// The lease ends without a word of its holder, who is told at the next renewal.
	server.Expire(lock)
	second, err := b.Acquire(ctx, lock)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Context().Done():
	case <-ctx.Done():
		t.Fatal("the first holder was not told that its lease is gone")
	}
	if cause := context.Cause(first.Context()); !errors.Is(cause, locks.ErrLost) {
		t.Errorf("the first lease ended by %v, want an error over ErrLost", cause)
	}
	if x, y := first.Token(), second.Token(); x.Lineage != y.Lineage || x.Seq >= y.Seq {
		t.Errorf("tokens %v and then %v, want a higher one of one lineage", x, y)
	}
	if err := second.Release(ctx); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func TestAWaiterThatGivesUpLeavesNoEntry(t *testing.T) {
	server, url := serve(t, nil)
	a, b := newLocker(t, url, secret), newLocker(t, url, secret)
	holder, err := a.Acquire(t.Context(), lock)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := b.Acquire(ctx, lock)
		gaveUp <- err
	}()
	await(t, "the waiter is in the queue", func() bool { return len(server.Entries(lock)) == 2 })
	cancel()
	if err := <-gaveUp; !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire = %v, want an error over ErrCancelled and context.Canceled", err)
	}
	await(t, "the waiter has left the queue", func() bool { return len(server.Entries(lock)) == 1 })
	if err := holder.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func TestTheKindsOfErrorCrossTheWire(t *testing.T) {
	_, url := serve(t, nil)
	b := lockserver.NewBackend(loopback.NewClient(url, secret))
	take := func(a memlock.Attempt) error {
		_, err := b.Take(t.Context(), a)
		return err
	}
	good := memlock.Attempt{Name: lock, ID: "one", TTL: ttl}
	if err := take(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		got  error
		want error
	}{
		{"a lock that another holds", take(memlock.Attempt{Name: lock, ID: "two", TTL: ttl}), locks.ErrHeld},
		{"an empty name", take(memlock.Attempt{ID: "two", TTL: ttl}), locks.ErrBadName},
		{"a lease time of nothing", take(memlock.Attempt{Name: lock, ID: "two"}), locks.ErrBadOption},
		{"renewal of what is not held", b.Renew(t.Context(), lock, "two", ttl), locks.ErrLost},
		{"waiting without a place", b.Wait(t.Context(), lock, "two"), locks.ErrLost},
		{"release of what is not held", b.Release(t.Context(), lock, "two"), locks.ErrLost},
		{"renewal", b.Renew(t.Context(), lock, "one", ttl), nil},
		{"waiting for what is held", b.Wait(t.Context(), lock, "one"), nil},
		{"release", b.Release(t.Context(), lock, "one"), nil},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}

	_, url = serve(t, &memlock.ServerOptions{First: memlock.MaxNumber + 1})
	b = lockserver.NewBackend(loopback.NewClient(url, secret))
	if err := take(good); !errors.Is(err, locks.ErrUnsupported) {
		t.Errorf("numbers that are used up: got %v, want ErrUnsupported", err)
	}
}

func TestNothingIsGrantedWithoutTheSecret(t *testing.T) {
	server, url := serve(t, nil)
	l := newLocker(t, url, "another secret")
	if _, err := l.TryAcquire(t.Context(), lock); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("TryAcquire = %v, want an error over ErrUnreachable", err)
	}
	if got := server.Entries(lock); len(got) > 0 {
		t.Errorf("the server has the entries %v, want none", got)
	}
}

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !cond(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
