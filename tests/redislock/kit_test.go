package redislock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/internal/wired"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestKit(t *testing.T) { locktest.Run(t, newService) }

// newService is a namespace of the shared server, or a server of its own.
func newService(t *testing.T) *locktest.Service {
	var srv *servers.Redis
	addr := ""
	if locktest.NeedsOwnServer(t) {
		srv = servers.StartRedis(t, &servers.RedisOptions{AppendOnly: true})
		addr = srv.Addr()
	} else {
		addr = servers.SharedRedis(t)
	}
	const ttl = 2 * time.Second // a second is too short for a machine that is busy with other tests
	prefix := space()
	direct := newClient(t, addr)

	var wires wired.Set

	// The scripts are loaded, so that the first EVALSHA of a Locker takes.
	warm := newLocker(t, direct, &redislock.Options{Prefix: prefix})
	bounded.Release(t, bounded.Acquire(t, warm, "warm"))

	s := &locktest.Service{
		TTL:    ttl,
		MaxTTL: redislock.MaxTTL,
		New: func(t testing.TB, c locktest.Config) locks.Locker {
			t.Helper()
			wire := wired.New(t, proxy.CountRedis(t, addr))
			if c.TTL == 0 {
				c.TTL = ttl
			}
			client := newClient(t, wire.Network.Addr())
			l, err := redislock.New(client, &redislock.Options{
				Prefix: prefix, TTL: c.TTL, MaxHold: c.MaxHold, RequestTimeout: c.TTL / 2,
			})
			if err != nil {
				t.Fatal(err)
			}
			wires.Add(l, wire)
			return l
		},
		Entries: func(t testing.TB, name string) int {
			t.Helper()
			k := keyOf(prefix, name)
			held, err := direct.Exists(t.Context(), k+"lock").Result()
			if err != nil {
				t.Fatal(err)
			}
			return int(held) + waiters(t, direct, k)
		},
		DeleteEntry: func(t testing.TB, name string) {
			t.Helper()
			if n, err := direct.Del(t.Context(), keyOf(prefix, name)+"lock").Result(); n != 1 {
				t.Fatalf("delete the lock's key: %d deleted, error %v", n, err)
			}
		},
		ReplaceEntry: func(t testing.TB, name string) {
			t.Helper()
			by := fmt.Sprintf("%d somebody-else", time.Now().UnixMicro())
			if err := direct.Set(t.Context(), keyOf(prefix, name)+"lock", by, time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		},
		DeleteWaiters: func(t testing.TB, name string) {
			t.Helper()
			k := keyOf(prefix, name)
			if err := direct.Del(t.Context(), k+"queue", k+"alive").Err(); err != nil {
				t.Fatal(err)
			}
		},
		Expire: func(t testing.TB, name string) {
			t.Helper()
			if n, err := direct.Del(t.Context(), keyOf(prefix, name)+"lock").Result(); n != 1 {
				t.Fatalf("expire the lock's key: %d expired, error %v", n, err)
			}
		},
		BadOptions: map[string]func() (locks.Locker, error){
			"TTL below a millisecond": func() (locks.Locker, error) {
				return wired.Made(redislock.New(direct, &redislock.Options{TTL: time.Microsecond}))
			},
			"negative TTL": func() (locks.Locker, error) {
				return wired.Made(redislock.New(direct, &redislock.Options{TTL: -time.Second}))
			},
			"no address": func() (locks.Locker, error) { return wired.Made(redislock.Dial("", nil)) },
			"no client":  func() (locks.Locker, error) { return wired.Made(redislock.New(nil, nil)) },
		},
		Secret: func(t testing.TB, password string) error {
			t.Helper()
			l, err := redislock.Dial("redis://user:"+password+"@127.0.0.1:1", &redislock.Options{TTL: ttl})
			if err != nil {
				return err
			}
			defer closeLocker(t, l)
			lease, err := l.TryAcquire(bounded.Context(t), "a")
			if err == nil {
				bounded.Release(t, lease)
			}
			return err
		},
	}
	wires.Equip(s, "EVALSHA")
	if srv != nil {
		wired.EquipServer(s, srv)
	}
	return s
}

// keyOf is key for any name: the table of the package comment.
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
	return key(prefix, encoded)
}
