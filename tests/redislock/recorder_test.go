package redislock_test

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// recorder keeps the requests that take a lock, to send copies of them later.
type recorder struct {
	*redis.Client

	mu    sync.Mutex
	takes []func(context.Context) []any
}

func (r *recorder) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if len(keys) == 5 && len(args) == 3 {
		keys, args := slices.Clone(keys), slices.Clone(args)
		r.mu.Lock()
		r.takes = append(r.takes, func(ctx context.Context) []any {
			reply, _ := r.Client.EvalSha(ctx, sha, keys, args...).Slice()
			return reply
		})
		r.mu.Unlock()
	}
	return r.Client.EvalSha(ctx, sha, keys, args...)
}
