package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// scripts are the texts that the package sends, by the number of their keys and
// arguments.
type scripts struct {
	mu    sync.Mutex
	texts map[string]string
}

// The scripts' numbers of keys and arguments.
const (
	takeScript    = "7 11"
	confirmScript = "2 5"
	renewScript   = "4 6"
	releaseScript = "4 5"
)

// reading is a client that reads what scripts are sent through it.
type reading struct {
	*redis.Client
	scripts *scripts
}

// EvalSha knows no script, so that its text follows.
func (r *reading) EvalSha(ctx context.Context, sha string, _ []string, _ ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, "EVALSHA", sha)
	cmd.SetErr(noScript{})
	return cmd
}

type noScript struct{}

func (noScript) Error() string { return "NOSCRIPT no matching script" }
func (noScript) RedisError()   {}

func (r *reading) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	r.scripts.mu.Lock()
	r.scripts.texts[fmt.Sprint(len(keys), " ", len(args))] = script
	r.scripts.mu.Unlock()
	return r.Client.Eval(ctx, script, keys, args...)
}

// readScripts makes a Redlock on one server use each of its scripts that changes
// anything.
func readScripts(t *testing.T) *scripts {
	t.Helper()
	s := &scripts{texts: make(map[string]string)}
	var clients []redislock.Client
	for range 3 {
		srv := servers.StartRedis(t, nil)
		clients = append(clients, &reading{newClient(t, srv.Addr()), s})
	}
	prefix := space()
	l := newRedlock(t, clients, &redislock.RedlockOptions{Prefix: prefix, TTL: 4 * time.Second, NodeTimeout: time.Second})
	_ = bounded.Acquire(t, l, "a").Release(t.Context())
	// One server out of step, so that the token is written back.
	ahead := time.Now().Add(time.Hour).UnixMicro()
	first := clients[0].(*reading).Client
	if err := first.Set(t.Context(), keyOf(prefix, "a")+"count", fmt.Sprintf("%d somebody", ahead), 0).Err(); err != nil {
		t.Fatal(err)
	}
	// The majority that answers first may be the two that are in step.
	bounded.Eventually(t, "all scripts were sent", func() bool {
		lease := bounded.Acquire(t, l, "a")
		before := lease.Deadline()
		bounded.Eventually(t, "a renewal", func() bool { return lease.Deadline().After(before) || lease.Context().Err() != nil })
		_ = lease.Release(t.Context())
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, shape := range []string{takeScript, confirmScript, renewScript, releaseScript} {
			if s.texts[shape] == "" {
				return false
			}
		}
		return true
	})
	return s
}

// withClock is the text of a script that reads the time from a key.
func (s *scripts) withClock(t *testing.T, shape, clock string) *redis.Script {
	t.Helper()
	const now = "redis.call('TIME')"
	text := s.texts[shape]
	if n := strings.Count(text, now); n != 1 {
		t.Fatalf("the script %q asks for the time in %d places, want 1", shape, n)
	}
	return redis.NewScript(strings.Replace(text, now, fmt.Sprintf("redis.call('HMGET', '%s', 's', 'us')", clock), 1))
}
