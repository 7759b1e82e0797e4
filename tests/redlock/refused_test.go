package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// refusing is a client of a server that refuses takes from some time on, as by an
// ACL that was changed.
type refusing struct {
	*redis.Client
	now *atomic.Bool
}

func (r refusing) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if r.now.Load() && fmt.Sprint(len(keys), " ", len(args)) == takeScript {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(noPermission{})
		return cmd
	}
	return r.Client.EvalSha(ctx, sha, keys, args...)
}

type noPermission struct{}

func (noPermission) Error() string { return "NOPERM this user has no permissions to run 'evalsha'" }
func (noPermission) RedisError()   {}

// A majority refuses, at the first request or to one that waits: what the others
// have of the attempt goes.
func TestARefusalByAMajorityLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	var now atomic.Bool
	l := newRedlock(t, []redislock.Client{s.clients[0], refusing{s.clients[1], &now}, refusing{s.clients[2], &now}}, rarePolls(prefix))
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, locks.ErrUnreachable) || !strings.Contains(fmt.Sprint(err), "NOPERM") {
			t.Errorf("%s: %v, want ErrUnreachable with NOPERM", what, err)
		}
		bounded.Eventually(t, what+" leaves nothing", func() bool { return s.entries(t, k) == 0 })
	}
	held := bounded.Acquire(t, l, "a")
	waiter := bounded.Acquiring(bounded.Context(t), l, "a")
	bounded.Eventually(t, "all servers know the waiter", func() bool { return s.queued(t, prefix) })
	now.Store(true)
	bounded.Release(t, held)
	refused("a waiter that is woken", bounded.Receive(t, "the waiter", waiter).Err)

	for what, take := range map[string]func(context.Context, string) (*locks.Lease, error){"Acquire": l.Acquire, "TryAcquire": l.TryAcquire} {
		_, err := take(bounded.Context(t), "a")
		refused(what, err)
	}
	now.Store(false)
	bounded.Release(t, bounded.Try(t, l, "a"))
	bounded.Close(t, l) // waits for every request
	if got := s.entries(t, k); got != 0 {
		t.Errorf("a server has %d entries of a Redlock that is closed", got)
	}
}
