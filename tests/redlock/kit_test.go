package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/internal/wired"
)

func TestKit(t *testing.T) {
	shared := startSet(t, 3, false)
	locktest.Run(t, func(t *testing.T) *locktest.Service {
		if locktest.NeedsOwnServer(t) {
			s := startSet(t, 3, true)
			return equipServers(newService(t, s), s)
		}
		return newService(t, shared)
	})
}

// newService is a namespace of the servers.
func newService(t testing.TB, s *set) *locktest.Service {
	const ttl = 3 * time.Second // less is too short for a machine that is busy with other tests
	prefix := space()

	// The servers have become a set and know the scripts, so that the first EVALSHA
	// of a Redlock takes.
	bounded.Release(t, bounded.Acquire(t, s.redlock(t, &redislock.RedlockOptions{Prefix: prefix, TTL: time.Minute, NodeTimeout: 10 * time.Second}), "warm"))

	var mu sync.Mutex
	all := make(map[locks.Locker]*wires)
	of := func(t testing.TB, l locks.Locker) *wires {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if all[l] == nil {
			t.Fatal("the Locker is not one of New")
		}
		return all[l]
	}
	remove := func(t testing.TB, name, what string, least int64) {
		t.Helper()
		s.each(t, func(ctx context.Context, client *redis.Client) error {
			n, err := client.Del(ctx, keyOf(prefix, name)+what).Result()
			if err == nil && n < least {
				err = fmt.Errorf("there is no %s of %q", what, name)
			}
			return err
		})
	}
	dead := []redislock.Client{newClient(t, "127.0.0.1:1"), newClient(t, "127.0.0.1:1"), newClient(t, "127.0.0.1:1")}
	made := func(clients []redislock.Client, o *redislock.RedlockOptions) func() (locks.Locker, error) {
		return func() (locks.Locker, error) { return wired.Made(redislock.NewRedlock(clients, o)) }
	}
	return &locktest.Service{
		TTL:    ttl,
		MaxTTL: redislock.MaxTTL,
		New: func(t testing.TB, c locktest.Config) locks.Locker {
			t.Helper()
			if c.TTL == 0 {
				c.TTL = ttl
			}
			l, w := s.wiredRedlock(t, &redislock.RedlockOptions{Prefix: prefix, TTL: c.TTL, MaxHold: c.MaxHold, NodeTimeout: c.TTL / 4})
			mu.Lock()
			defer mu.Unlock()
			all[l] = w
			return l
		},
		Entries: func(t testing.TB, name string) int { return s.entries(t, keyOf(prefix, name)) },
		DeleteEntry: func(t testing.TB, name string) {
			t.Helper()
			remove(t, name, "lock", 1)
		},
		Expire: func(t testing.TB, name string) {
			t.Helper()
			remove(t, name, "lock", 1)
		},
		DeleteWaiters: func(t testing.TB, name string) {
			t.Helper()
			remove(t, name, "queue", 0)
		},
		ReplaceEntry: func(t testing.TB, name string) {
			t.Helper()
			s.each(t, func(ctx context.Context, client *redis.Client) error {
				return client.Set(ctx, keyOf(prefix, name)+"lock", "somebody-else", time.Minute).Err()
			})
		},
		Cut: func(t testing.TB, l locks.Locker) func() { return of(t, l).cut(t) },
		LoseReply: func(t testing.TB, l locks.Locker) {
			for _, c := range of(t, l).counters {
				c.DropReply("EVALSHA")
			}
		},
		Requests: func() int { // of each server
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for _, w := range all {
				n += w.requests()
			}
			return n
		},
		BadOptions: map[string]func() (locks.Locker, error){
			"TTL below a millisecond":   made(dead, &redislock.RedlockOptions{TTL: time.Microsecond}),
			"negative TTL":              made(dead, &redislock.RedlockOptions{TTL: -time.Second}),
			"NodeTimeout near TTL":      made(dead, &redislock.RedlockOptions{TTL: time.Second, NodeTimeout: time.Second}),
			"no server":                 made(nil, nil),
			"an even number of servers": made(dead[:2], nil),
			"a server twice":            made([]redislock.Client{dead[0], dead[1], dead[0]}, nil),
			"no address": func() (locks.Locker, error) {
				return wired.Made(redislock.DialRedlock([]string{""}, nil))
			},
		},
		Secret: func(t testing.TB, password string) error {
			t.Helper()
			var addresses []string
			for port := range 3 {
				addresses = append(addresses, fmt.Sprintf("redis://user:%s@127.0.0.1:%d", password, port+1))
			}
			l, err := redislock.DialRedlock(addresses, &redislock.RedlockOptions{TTL: ttl})
			if err != nil {
				return err
			}
			defer bounded.Close(t, l)
			lease, err := l.TryAcquire(bounded.Context(t), "a")
			if err == nil {
				bounded.Release(t, lease)
			}
			return err
		},
	}
}

// equipServers sets what of the Service happens to servers that nobody shares.
func equipServers(service *locktest.Service, s *set) *locktest.Service {
	service.Restart = func(t testing.TB) {
		t.Helper()
		for _, srv := range s.servers {
			srv.Restart(t)
		}
	}
	service.Pause = func(t testing.TB) func() {
		t.Helper()
		for _, srv := range s.servers {
			srv.Pause(t)
		}
		return sync.OnceFunc(func() {
			for _, srv := range s.servers {
				srv.Resume(t)
			}
		})
	}
	return service
}
