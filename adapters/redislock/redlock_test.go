package redislock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
)

// nowhere makes clients of addresses that nobody serves.
func nowhere(t *testing.T, n int) (clients []redislock.Client) {
	t.Helper()
	for range n {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		t.Cleanup(func() { client.Close() })
		clients = append(clients, client)
	}
	return clients
}

func TestRedlockRefusesAnEvenNumberOfServers(t *testing.T) {
	for _, n := range []int{0, 2, 4} {
		l, err := redislock.NewRedlock(nowhere(t, n), nil)
		if !errors.Is(err, locks.ErrBadOption) || l != nil || !strings.Contains(err.Error(), "odd number") {
			t.Errorf("%d servers: %v, %v, want ErrBadOption that asks for an odd number", n, l, err)
		}
	}
	for _, n := range []int{1, 3, 5} {
		l, err := redislock.NewRedlock(nowhere(t, n), nil)
		if err != nil {
			t.Errorf("%d servers: %v", n, err)
			continue
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("%d servers: Close: %v", n, err)
		}
	}
}

// byValue is a client that cannot be compared.
type byValue struct {
	redislock.Client
	_ []int
}

func TestRedlockRefusesClientsThatAreNotOneServerEach(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	defer ring.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	good := nowhere(t, 2)
	for what, c := range map[string]struct {
		client redislock.Client
		want   string
	}{
		"nil":            {nil, "server 3 is nil"},
		"a nil pointer":  {(*redis.Client)(nil), "server 3 is nil"},
		"a Ring":         {ring, "server 3 is a *redis.Ring"},
		"a Cluster":      {cluster, "server 3 is a *redis.ClusterClient"},
		"the second one": {good[1], "servers 2 and 3 have the same client"},
	} {
		l, err := redislock.NewRedlock([]redislock.Client{good[0], good[1], c.client}, nil)
		if !errors.Is(err, locks.ErrBadOption) || l != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want ErrBadOption that says %q", what, l, err, c.want)
		}
	}
	value := byValue{Client: good[0]}
	l, err := redislock.NewRedlock([]redislock.Client{value, value, value}, nil)
	if err != nil {
		t.Errorf("clients that cannot be compared: %v", err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRedlockRefusesBadOptions(t *testing.T) {
	clients := nowhere(t, 3)
	for what, o := range map[string]redislock.RedlockOptions{
		"TTL too short":           {TTL: redislock.MinTTL - 1},
		"TTL too long":            {TTL: redislock.MaxTTL + 1},
		"MaxHold negative":        {MaxHold: -1},
		"NodeTimeout negative":    {NodeTimeout: -1},
		"NodeTimeout too long":    {TTL: time.Second, NodeTimeout: 251 * time.Millisecond},
		"RetryMin negative":       {RetryMin: -1},
		"PollInterval above TTL":  {TTL: time.Second, PollInterval: 2 * time.Second},
		"Prefix with a brace":     {Prefix: "a{b"},
		"Prefix of 65 characters": {Prefix: strings.Repeat("x", 65)},
	} {
		if l, err := redislock.NewRedlock(clients, &o); !errors.Is(err, locks.ErrBadOption) || l != nil {
			t.Errorf("%s: %v, %v, want ErrBadOption", what, l, err)
		}
		addresses := []string{"redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"}
		if l, err := redislock.DialRedlock(addresses, &o); !errors.Is(err, locks.ErrBadOption) || l != nil {
			t.Errorf("%s: DialRedlock: %v, %v, want ErrBadOption", what, l, err)
		}
	}
	for what, o := range map[string]*redislock.RedlockOptions{
		"nil": nil, "zero": {}, "shortest": {TTL: redislock.MinTTL}, "longest": {TTL: redislock.MaxTTL},
		"longest NodeTimeout": {TTL: time.Second, NodeTimeout: 250 * time.Millisecond},
	} {
		l, err := redislock.NewRedlock(clients, o)
		if err != nil {
			t.Errorf("%s options: %v", what, err)
			continue
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("%s options: Close: %v", what, err)
		}
	}
}

func TestDialRedlockChecksAddresses(t *testing.T) {
	for what, addresses := range map[string][]string{
		"none":         nil,
		"two":          {"redis://127.0.0.1:1", "redis://127.0.0.1:2"},
		"empty":        {"redis://127.0.0.1:1", "", "redis://127.0.0.1:3"},
		"no port":      {"redis://127.0.0.1:1", "redis://127.0.0.1:65536", "redis://127.0.0.1:3"},
		"no scheme":    {"redis://127.0.0.1:1", "127.0.0.1:2", "redis://127.0.0.1:3"},
		"one twice":    {"redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://user:secret-4711@127.0.0.1:1/5"},
		"bad password": {"redis://user:secret-4711%@127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"},
	} {
		l, err := redislock.DialRedlock(addresses, nil)
		if !errors.Is(err, locks.ErrBadOption) || l != nil {
			t.Errorf("%s: %v, %v, want ErrBadOption", what, l, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the password stands in %v", what, err)
		}
	}
}
