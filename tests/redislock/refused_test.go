package redislock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// refusing is a client of which the n-th take is refused, as by an ACL that was
// changed meanwhile.
type refusing struct {
	*redis.Client
	sent, refuse, met atomic.Int32
}

func (r *refusing) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if isTake(keys, args) && r.sent.Add(1) == r.refuse.Load() {
		r.met.Add(1)
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(noPermission{})
		return cmd
	}
	return r.Client.EvalSha(ctx, sha, keys, args...)
}

type noPermission struct{}

func (noPermission) Error() string {
	return "NOPERM this user has no permissions to run the 'evalsha' command"
}
func (noPermission) RedisError() {}

// An error in the middle of an Acquire: the server refuses the first request
// after the one that made it a waiter, then the second, and so on until Acquire
// makes fewer.
func TestARefusalAtAnyRequestLeavesNothing(t *testing.T) {
	t.Parallel()
	prefix := space()
	direct := newClient(t, servers.SharedRedis(t))
	k := key(prefix, "a")
	client := &refusing{Client: newClient(t, servers.SharedRedis(t))}
	holder, l := newLocker(t, direct, rarePolls(prefix)), newLocker(t, client, rarePolls(prefix))
	bounded.Release(t, bounded.Acquire(t, l, "a"))

	for n := int32(2); n < 10; n++ {
		held := bounded.Acquire(t, holder, "a")
		before := client.met.Load()
		client.refuse.Store(n)
		client.sent.Store(0)
		waiter := bounded.Acquiring(bounded.Context(t), l, "a")
		bounded.Eventually(t, "the refusal, or a waiter", func() bool {
			return client.met.Load() > before || waiters(t, direct, k) == 1
		})
		bounded.Release(t, held)
		r := bounded.Receive(t, "Acquire", waiter)
		client.refuse.Store(0)
		if client.met.Load() == before {
			if r.Err != nil || n < 3 {
				t.Fatalf("with request %d to be refused Acquire returned %v after fewer", n, r.Err)
			}
			bounded.Release(t, r.Lease)
			return
		}
		if !errors.Is(r.Err, locks.ErrUnreachable) || !strings.Contains(r.Err.Error(), "NOPERM") {
			t.Errorf("request %d was refused: Acquire returned %v, want ErrUnreachable with NOPERM", n, r.Err)
		}
		bounded.Eventually(t, "nothing is left", func() bool {
			return direct.Exists(t.Context(), k+"lock", k+"queue").Val() == 0
		})
	}
	t.Error("Acquire never came to its end without a refusal")
}
