package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
)

// maxSilent is how many requests to a server that has left one unanswered may be
// under way. The others fail at once, so that a server that hangs keeps neither
// connections nor goroutines.
const maxSilent = 16

// node is one of the servers.
type node struct {
	redlock *Redlock
	index   int
	client  Client

	met     atomic.Pointer[string] // id of the server; nil: it has not told yet, or is not of the set
	hears   atomic.Bool            // its messages for waiters reach us
	silent  atomic.Bool            // the last request that ended had no reply in time
	pending atomic.Int32           // requests under way
	strange atomic.Bool            // warned of
}

// number is how messages count the servers.
func (n *node) number() int { return n.index + 1 }

// run sends a script with a number for this request and returns its reply.
func (n *node) run(ctx context.Context, s *redis.Script, keys []string, args ...any) ([]any, error) {
	number := fmt.Sprintf("%s.%d", n.redlock.tag, n.redlock.asked.Add(1))
	reply, err := s.Run(ctx, n.client, keys, append(args, number)...).Slice()
	if err != nil {
		return nil, err
	}
	return own(reply, number)
}

// reply is what one server said.
type reply[T any] struct {
	node  *node
	value T
	err   error
}

// broadcast sends a request to the given servers at once. Each of them replies
// once; a request that has no reply within NodeTimeout has failed. Requests do not
// end with ctx, because their connections would be lost with them.
func broadcast[T any](ctx context.Context, r *Redlock, nodes []*node, request func(context.Context, *node) (T, error)) <-chan reply[T] {
	replies := make(chan reply[T], len(nodes))
	ctx = context.WithoutCancel(ctx)
	for _, n := range nodes {
		started := r.group.Go(func() {
			value, err := bounded(ctx, n, request)
			replies <- reply[T]{n, value, err}
		})
		if !started {
			replies <- reply[T]{node: n, err: &locks.Error{Op: "request", Kind: locks.ErrClosed}}
		}
	}
	return replies
}

func bounded[T any](ctx context.Context, n *node, request func(context.Context, *node) (T, error)) (T, error) {
	defer n.pending.Add(-1)
	if n.pending.Add(1) > maxSilent && n.silent.Load() {
		return *new(T), n.failed(errors.New("it has left requests unanswered, and no more are sent"))
	}
	ctx, cancel := context.WithTimeout(ctx, n.redlock.nodeTimeout)
	defer cancel()
	value, err := request(ctx, n)
	n.silent.Store(err != nil && ctx.Err() != nil)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no reply within %v", n.redlock.nodeTimeout) // no deadline of the caller's
	}
	if err != nil {
		err = n.failed(err)
	}
	return value, err
}

func (n *node) failed(err error) error { return fmt.Errorf("server %d: %w", n.number(), err) }

// gather calls got for each reply until it returns false, all have come, ctx has
// ended, or NodeTimeout is over, which a client that ignores its context may
// exceed. It returns how many replies are still to come.
func gather[T any](ctx context.Context, r *Redlock, replies <-chan reply[T], want int, got func(reply[T]) bool) (left int) {
	timer := time.NewTimer(r.nodeTimeout + r.nodeTimeout/8)
	defer timer.Stop()
	for ; want > 0; want-- {
		select {
		case rep := <-replies:
			if !got(rep) {
				return want - 1
			}
		case <-ctx.Done():
			return want
		case <-timer.C:
			return want
		}
	}
	return 0
}

// gatherQuick is gather that does not wait for servers which have left a request
// unanswered, unless open says that so many missing replies may still decide.
func gatherQuick[T any](ctx context.Context, r *Redlock, nodes []*node, replies <-chan reply[T], got func(reply[T]) bool, open func(left int) bool) (left int) {
	awaited := make(map[*node]bool)
	for _, n := range nodes {
		if !n.silent.Load() {
			awaited[n] = true
		}
	}
	left = len(nodes)
	if len(awaited) == 0 && !open(left) {
		return left
	}
	gather(ctx, r, replies, left, func(rep reply[T]) bool {
		left--
		delete(awaited, rep.node)
		return got(rep) && (len(awaited) > 0 || open(left))
	})
	return left
}

// linger hears stragglers after a majority has decided, for as long again as that
// took. So a server that is well is heard, and one that is slow costs little.
func linger[T any](r *Redlock, begun time.Time, replies <-chan reply[T], want int, got func(reply[T]) bool) (left int) {
	if want == 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(time.Since(begun), time.Millisecond))
	defer cancel()
	return gather(ctx, r, replies, want, got)
}
