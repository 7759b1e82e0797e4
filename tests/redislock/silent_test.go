package redislock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// A client that ignores contexts, which is go-redis' default, holds up nobody.
func TestClientWithoutContextTimeoutsDoesNotHoldUpTheCaller(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	client := redis.NewClient(&redis.Options{Addr: srv.Addr(), ReadTimeout: 2 * bounded.Patience})
	t.Cleanup(func() { client.Close() })
	l := newLocker(t, client, &redislock.Options{TTL: time.Minute, RequestTimeout: 100 * time.Millisecond})
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	srv.Pause(t)
	defer srv.Resume(t)
	tried := make(chan error, 1)
	go func() {
		_, err := l.TryAcquire(context.Background(), "a")
		tried <- err
	}()
	if err := bounded.Receive(t, "TryAcquire of a silent server", tried); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("TryAcquire: %v, want ErrUnreachable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := bounded.Acquiring(ctx, l, "a")
	cancel()
	select {
	case r := <-done:
		if !errors.Is(r.Err, locks.ErrCancelled) {
			t.Errorf("Acquire: %v, want ErrCancelled", r.Err)
		}
	case <-time.After(bounded.Patience):
		t.Error("Acquire does not notice that its context has ended")
	}
}

func TestAcquireThatEndsWithoutAReplyTellsThatTheServiceIsAway(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	l := newLocker(t, newClient(t, srv.Addr()), &redislock.Options{TTL: time.Minute, RequestTimeout: bounded.Patience})
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	srv.Pause(t)
	defer srv.Resume(t)
	for what, take := range map[string]func(context.Context, string) (*locks.Lease, error){"Acquire": l.Acquire, "TryAcquire": l.TryAcquire} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := take(ctx, "a")
		cancel()
		if !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, locks.ErrUnreachable) || !strings.Contains(err.Error(), "no reply within") {
			t.Errorf("%s: %v, want an error over ErrCancelled and ErrUnreachable that tells how long no reply came", what, err)
		}
	}
}

// The time of a first, short try is not the time of the request. A client that does
// not try again by itself tells its end before the context does.
func TestTryAcquireWaitsForRequestTimeout(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	client := redis.NewClient(&redis.Options{Addr: srv.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1, PoolSize: 100})
	t.Cleanup(func() { client.Close() })
	timeout := time.Second
	for range 4 {
		l := newLocker(t, client, &redislock.Options{TTL: time.Minute, RequestTimeout: timeout})
		bounded.Release(t, bounded.Acquire(t, l, "a"))
		srv.Pause(t)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				began := time.Now()
				_, err := l.TryAcquire(context.Background(), "a")
				if took := time.Since(began); !errors.Is(err, locks.ErrUnreachable) || took < timeout {
					t.Errorf("TryAcquire of a silent server: %v after %v, want ErrUnreachable after %v", err, took, timeout)
				}
			})
		}
		all.Wait()
		srv.Resume(t)
		closeLocker(t, l)
	}
}

// The same for the caller's own deadline.
func TestDeadlineOfTheCallerIsNotSilenceOfTheServer(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	client := redis.NewClient(&redis.Options{Addr: srv.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1, PoolSize: 100})
	t.Cleanup(func() { client.Close() })
	l := newLocker(t, client, &redislock.Options{TTL: time.Minute})
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	srv.Pause(t)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := l.TryAcquire(ctx, "a")
			for _, want := range []error{locks.ErrCancelled, context.DeadlineExceeded} {
				if !errors.Is(err, want) {
					t.Errorf("TryAcquire: %v, want it over %v", err, want)
				}
			}
		})
	}
	all.Wait()
	srv.Resume(t)
}
