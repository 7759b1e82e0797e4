package redislock_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// recorder keeps the requests that take a lock, to count them and to send
// copies of them later.
type recorder struct {
	*redis.Client

	mu       sync.Mutex
	takes    []func(context.Context) []any
	answered int
}

func (r *recorder) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if !isTake(keys, args) {
		return r.Client.EvalSha(ctx, sha, keys, args...)
	}
	keys, args = slices.Clone(keys), slices.Clone(args)
	r.mu.Lock()
	r.takes = append(r.takes, func(ctx context.Context) []any {
		reply, _ := r.Client.EvalSha(ctx, sha, keys, args...).Slice()
		return reply
	})
	r.mu.Unlock()
	cmd := r.Client.EvalSha(ctx, sha, keys, args...)
	r.mu.Lock()
	r.answered++
	r.mu.Unlock()
	return cmd
}

// isTake tells the take script from the others, which have fewer keys or
// arguments.
func isTake(keys []string, args []any) bool {
	return len(keys) == 5 && len(args) == 7
}

// settled waits for so many answers: two for a waiter that has nothing left to
// do but wait for its message. It has asked, subscribed, and asked again.
func (r *recorder) settled(t testing.TB, answers int) {
	t.Helper()
	bounded.Eventually(t, "the waiters have asked twice", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.answered >= answers
	})
}
