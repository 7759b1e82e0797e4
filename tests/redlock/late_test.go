package redlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// copier is a client that keeps the takes that go through it, to send copies of
// them later.
type copier struct {
	*redis.Client

	mu    sync.Mutex
	takes []func(context.Context) (any, error)
}

func (c *copier) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if len(keys) == 7 { // a take
		keys, args := slices.Clone(keys), slices.Clone(args)
		c.mu.Lock()
		c.takes = append(c.takes, func(ctx context.Context) (any, error) {
			return c.Client.EvalSha(ctx, sha, keys, args...).Result()
		})
		c.mu.Unlock()
	}
	return c.Client.EvalSha(ctx, sha, keys, args...)
}

// again sends all takes again and wants them refused.
func (c *copier) again(t *testing.T, want string) {
	t.Helper()
	c.mu.Lock()
	takes := slices.Clone(c.takes)
	c.mu.Unlock()
	if len(takes) == 0 {
		t.Error("there was no take")
	}
	for _, take := range takes {
		reply, err := take(context.Background())
		if fields, ok := reply.([]any); !ok || fields[0] != want {
			t.Errorf("a late copy of a take got %v, %v, want %q", reply, err, want)
		}
	}
}

func (s *set) copiers() (all []*copier, clients []redislock.Client) {
	for _, c := range s.clients {
		k := &copier{Client: c}
		all, clients = append(all, k), append(clients, k)
	}
	return all, clients
}

func TestLateCopyOfAReleasedGrantIsRefused(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	copiers, clients := s.copiers()
	l := newRedlock(t, clients, patient(space()))
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	bounded.Close(t, l)
	for _, c := range copiers {
		c.again(t, "over")
	}
}

func TestLateCopyOfAWithdrawnTakeIsRefused(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	holder := bounded.Acquire(t, s.redlock(t, patient(prefix)), "a")
	copiers, clients := s.copiers()
	l := newRedlock(t, clients, patient(prefix))
	ctx, cancel := context.WithCancel(t.Context())
	done := bounded.Acquiring(ctx, l, "a")
	bounded.Eventually(t, "it waits", func() bool { return s.entries(t, keyOf(prefix, "a")) == 2 })
	cancel()
	bounded.Receive(t, "the waiter", done)
	bounded.Close(t, l)
	bounded.Release(t, holder)
	bounded.Eventually(t, "the lock is free everywhere", func() bool { return s.entries(t, keyOf(prefix, "a")) == 0 })
	for _, c := range copiers {
		c.again(t, "over")
	}
	if n := s.entries(t, keyOf(prefix, "a")); n != 0 {
		t.Errorf("the late copies left %d entries", n)
	}
}

// A repeated take of a grant that is held gets what the first one got.
func TestCopyOfATakeThatIsHeldGetsTheSameNumber(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	copiers, clients := s.copiers()
	lease := bounded.Acquire(t, newRedlock(t, clients, patient(space())), "a")
	for _, c := range copiers {
		c.again(t, "granted")
	}
	bounded.Release(t, lease)
}
