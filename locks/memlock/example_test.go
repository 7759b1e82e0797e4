package memlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

func Example() {
	locker, err := memlock.New(nil)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer locker.Close(ctx)

	for range 2 {
		err = locks.Do(ctx, locker, "accounts/42", func(ctx context.Context, lease *locks.Lease) error {
			fmt.Println("working with token", lease.Token().Seq) // sent with every write
			return ctx.Err()
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// working with token 1
	// working with token 2
}

// Five instances of a nightly job start, of which exactly one may run. The
// others wait a while, in case the first dies, and then report that another has
// it. A lock keeps them from running at the same time and no more: the Example of
// that name in package fencedkv also records that the work is done.
func Example_nightlyJob() {
	server := memlock.NewServer(nil) // in production a service that all instances reach

	var wg sync.WaitGroup
	results := make(chan string, 5)
	for range 5 {
		wg.Go(func() {
			locker, err := server.NewLocker(&memlock.Options{TTL: 30 * time.Second})
			if err != nil {
				results <- err.Error()
				return
			}
			defer locker.Close(context.Background())

			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			lease, err := locker.Acquire(ctx, "nightly-job")
			switch {
			case err == nil:
				results <- "run"
				nightlyJob(lease.Context()) // ends if the lock is lost
				lease.Release(context.Background())
			case errors.Is(err, locks.ErrHeld):
				results <- "another instance has it"
			default:
				results <- err.Error()
			}
		})
	}
	wg.Wait()
	close(results)
	for result := range results {
		fmt.Println(result)
	}
	// Unordered output:
	// run
	// another instance has it
	// another instance has it
	// another instance has it
	// another instance has it
}

// nightlyJob takes longer than the others wait. It hands its context on to all
// that it calls, and sends the token of fence.FromContext with each write.
func nightlyJob(ctx context.Context) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}
