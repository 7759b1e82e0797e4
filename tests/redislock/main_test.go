// Package redislock_test runs the Redis adapter against real redis-servers.
package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) {
	if addr, prefix, found := strings.Cut(os.Getenv(waiterEnv), " "); found {
		fmt.Println(waitFor(addr, prefix))
		return
	}
	servers.Main(m)
}

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
	ctx, cancel := context.WithTimeout(context.Background(), bounded.Patience)
	defer cancel()
	if err := l.Close(ctx); err != nil && !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("Close: %v", err)
	}
}

// space is a prefix that no other test uses.
func space() string { return "test:" + rand.Text() }

// waiters counts the waiters that the server knows.
func waiters(t testing.TB, client redis.Cmdable, key string) int {
	t.Helper()
	n, err := client.ZCard(context.Background(), key+"queue").Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// listening counts the Lockers with this prefix that hear messages.
func listening(t testing.TB, client *redis.Client, prefix string) int {
	t.Helper()
	channels, err := client.PubSubChannels(context.Background(), prefix+":wake:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(channels)
}

// key begins the keys of a lock whose name needs no escape.
func key(prefix, name string) string { return prefix + ":{" + name + "}:" }
