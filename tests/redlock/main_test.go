// Package redlock_test runs Redlock against sets of real redis-servers.
package redlock_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// set is some servers and a direct client of each.
type set struct {
	servers []*servers.Redis
	clients []*redis.Client
}

// startSet starts servers, which forget when they end unless durable.
func startSet(t testing.TB, n int, durable bool) *set {
	t.Helper()
	s := &set{}
	for range n {
		srv := servers.StartRedis(t, &servers.RedisOptions{AppendOnly: durable})
		s.servers = append(s.servers, srv)
		s.clients = append(s.clients, newClient(t, srv.Addr()))
	}
	return s
}

func newClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	return client
}

// redlock makes a Redlock with connections of its own, which the test's end closes.
func (s *set) redlock(t testing.TB, o *redislock.RedlockOptions) *redislock.Redlock {
	t.Helper()
	l, _ := s.wiredRedlock(t, o)
	return l
}

// wires are the ways of one Redlock to its servers.
type wires struct {
	networks []*proxy.Proxy
	counters []*proxy.Counter
}

// wiredRedlock is redlock with a network that can be cut and a counter of requests
// before each server.
func (s *set) wiredRedlock(t testing.TB, o *redislock.RedlockOptions) (*redislock.Redlock, *wires) {
	t.Helper()
	w := &wires{}
	var clients []redislock.Client
	for _, srv := range s.servers {
		counter := proxy.CountRedis(t, srv.Addr())
		network := proxy.New(t, counter.Addr())
		w.counters, w.networks = append(w.counters, counter), append(w.networks, network)
		clients = append(clients, newClient(t, network.Addr()))
	}
	return newRedlock(t, clients, o), w
}

// newRedlock makes a Redlock that the test's end closes, before its clients.
func newRedlock(t testing.TB, clients []redislock.Client, o *redislock.RedlockOptions) *redislock.Redlock {
	t.Helper()
	l, err := redislock.NewRedlock(clients, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bounded.Patience)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Logf("close: %v", err)
		}
	})
	return l
}

// requests is how many requests each server has got, on average.
func (w *wires) requests() int {
	n := 0
	for _, c := range w.counters {
		n += len(c.Requests())
	}
	return n / len(w.counters)
}

func (w *wires) reset() {
	for _, c := range w.counters {
		c.Reset()
	}
}

func (w *wires) cut(t testing.TB) (heal func()) {
	t.Helper()
	for _, n := range w.networks {
		n.BlackHole(t, proxy.Both)
	}
	return sync.OnceFunc(func() {
		for _, n := range w.networks {
			n.Heal(t)
		}
	})
}

// each calls f with the direct client of every server.
func (s *set) each(t testing.TB, f func(context.Context, *redis.Client) error) {
	t.Helper()
	for i, client := range s.clients {
		if err := f(context.Background(), client); err != nil {
			t.Fatalf("server %d: %v", i+1, err)
		}
	}
}

// entries is how many entries of holders and waiters a server has for the lock, on
// the server that has most.
func (s *set) entries(t testing.TB, key string) int {
	t.Helper()
	most := 0
	s.each(t, func(ctx context.Context, client *redis.Client) error {
		held, err := client.Exists(ctx, key+"lock").Result()
		if err != nil {
			return err
		}
		waiting, err := client.ZCard(ctx, key+"queue").Result()
		most = max(most, int(held+waiting))
		return err
	})
	return most
}

// space is a prefix that no other test uses.
func space() string { return "test:" + rand.Text() }

// keyOf begins the keys of a lock: the table of the type Redlock.
func keyOf(prefix, name string) string {
	encoded := ""
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '/', c == ':', c == '-':
			encoded += string(rune(c))
		default:
			encoded += fmt.Sprintf("%%%02X", c)
		}
	}
	return prefix + ":redlock:{" + encoded + "}:"
}

func zOf(member string, score float64) redis.Z { return redis.Z{Member: member, Score: score} }
