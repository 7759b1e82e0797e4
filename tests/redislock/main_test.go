// Package redislock_test runs the Redis adapter against real redis-servers.
package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func newClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

// newLocker makes a Locker that the test's end closes, before its client.
func newLocker(t testing.TB, client redislock.Client, o *redislock.Options) *redislock.Locker {
	t.Helper()
	l, err := redislock.New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLocker(t, l) })
	return l
}

func closeLocker(t testing.TB, l locks.Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.Close(ctx); err != nil && !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("Close: %v", err)
	}
}

// space is a prefix that no other test uses.
func space() string { return "test:" + rand.Text() }

func acquire(t testing.TB, l locks.Locker, name string) *locks.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := l.Acquire(ctx, name)
	if err != nil {
		t.Fatalf("Acquire %q: %v", name, err)
	}
	return lease
}

func release(t testing.TB, lease *locks.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatalf("Release %q: %v", lease.Name(), err)
	}
}

type result struct {
	lease *locks.Lease
	err   error
}

// acquiring calls Acquire in the background.
func acquiring(ctx context.Context, l locks.Locker, name string) <-chan result {
	done := make(chan result, 1)
	go func() {
		lease, err := l.Acquire(ctx, name)
		done <- result{lease, err}
	}()
	return done
}

func await(t testing.TB, what string, done <-chan result) *locks.Lease {
	t.Helper()
	select {
	case r := <-done:
		if r.err != nil {
			t.Fatalf("%s: %v", what, r.err)
		}
		return r.lease
	case <-time.After(patience):
		t.Fatalf("%s: still waiting after %v", what, patience)
		return nil
	}
}

// eventually asks until the answer is true.
func eventually(t testing.TB, what string, ask func() bool) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !ask(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v", what, patience)
		}
	}
}

// waiters counts the waiters that the server knows.
func waiters(t testing.TB, client redis.Cmdable, key string) int {
	t.Helper()
	n, err := client.ZCard(context.Background(), key+"queue").Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// key begins the keys of a lock whose name needs no escape.
func key(prefix, name string) string { return prefix + ":{" + name + "}:" }
