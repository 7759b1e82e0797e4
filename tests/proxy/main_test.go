package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// brief is how long a test waits for what must not come.
const brief = 100 * time.Millisecond

// redisClient never retries: the tests count what goes over the wire.
func redisClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, PoolSize: 1, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { client.Close() })
	return client
}

// within runs f with a context of the given time.
func within(t *testing.T, d time.Duration, f func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return f(ctx)
}

// connectionLost tells whether the other end has gone; EPIPE is what a write says
// that comes after the reset.
func connectionLost(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// waitFor waits for an event of the proxy.
func waitFor(t *testing.T, what string, event <-chan struct{}) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not happen in 20 s", what)
	}
}
