package redislock_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// delaying sends the first take when it is told to, and its caller hears nothing.
type delaying struct {
	*redis.Client
	first sync.Once
	send  func(context.Context) []any
}

func (d *delaying) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	var silent *redis.Cmd
	if isTake(keys, args) {
		d.first.Do(func() {
			d.send = func(ctx context.Context) []any {
				reply, _ := d.Client.EvalSha(ctx, sha, keys, args...).Slice()
				return reply
			}
			silent = redis.NewCmd(ctx)
			silent.SetErr(os.ErrDeadlineExceeded)
		})
	}
	if silent != nil {
		return silent
	}
	return d.Client.EvalSha(ctx, sha, keys, args...)
}

// A packet that is sent again arrives after the copy that was made meanwhile, and
// after the lock was released and taken by another.
func TestLateCopyOfATakeThatWasRepeatedTakesNothing(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	d := &delaying{Client: client}
	l := newLocker(t, d, &redislock.Options{Prefix: prefix, TTL: time.Minute})
	other := newLocker(t, client, &redislock.Options{Prefix: prefix, TTL: time.Minute})
	bounded.Release(t, bounded.Acquire(t, other, "b")) // the server knows the script
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	bounded.Release(t, bounded.Acquire(t, other, "a"))
	if got := d.send(t.Context()); len(got) != 2 || got[0] != "over" {
		t.Errorf("the late copy got %v, want over", got)
	}
	lease, err := other.TryAcquire(bounded.Context(t), "a")
	if err != nil {
		t.Fatalf("TryAcquire of the free lock after the late copy: %v", err)
	}
	bounded.Release(t, lease)
}
