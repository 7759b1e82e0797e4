package redislock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
)

const waiterEnv = "FENCEDKV_TEST_WAITER"

// stoppable is rarePolls with a claim time that a test can wait for.
func stoppable(prefix string) *redislock.Options {
	o := rarePolls(prefix)
	o.ClaimTime = 300 * time.Millisecond
	return o
}

// waitFor is the process of a waiter. It says when it has the lock, and gives it back.
func waitFor(addr, prefix string) (err error) {
	ctx := context.Background()
	l, err := redislock.Dial("redis://"+addr, stoppable(prefix))
	if err != nil {
		return err
	}
	defer l.Close(ctx)
	return locks.Do(ctx, l, "a", func(context.Context, *locks.Lease) error {
		fmt.Println("granted")
		return nil
	})
}
