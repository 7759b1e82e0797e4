package redislock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
)

// clustered is a client of a Cluster that reaches nobody.
type clustered struct {
	*redis.Client
	reloads atomic.Int64
}

func (c *clustered) ReloadState(context.Context) { c.reloads.Add(1) }

// A dead master cannot say who has its keys now.
func TestFailedRequestLooksAnewWhoHasTheKeys(t *testing.T) {
	client := &clustered{Client: redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, ContextTimeoutEnabled: true})}
	defer client.Close()
	l, err := redislock.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.TryAcquire(t.Context(), "a"); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("TryAcquire: %v, want ErrUnreachable", err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if client.reloads.Load() == 0 {
		t.Error("the client was not asked to reload who has which keys")
	}
}
