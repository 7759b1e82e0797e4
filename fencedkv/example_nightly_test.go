package fencedkv_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// Five instances of a nightly job start, of which exactly one may do the work.
// The others wait at most so long, in case the first dies, and report that
// another has it. The record of the night, written under the lock's token, keeps
// an instance that comes later from doing the work again.
func Example_nightlyJob() {
	store, remove := openScratch()
	defer remove()
	job := store.Resource("nightly-job")
	server := memlock.NewServer(nil) // in production a service that all instances reach

	instance := func() string {
		locker, err := server.NewLocker(&memlock.Options{TTL: 30 * time.Second})
		if err != nil {
			return err.Error()
		}
		ctx := context.Background()
		defer locker.Close(ctx)

		night := []byte("2026-01-02")
		patient := locks.WaitAtMost(locker, 300*time.Millisecond)
		result := "done by an earlier instance"
		err = job.Exclusive(ctx, patient, func(ctx context.Context, h *fencedkv.Held) error {
			if _, err := h.Get(ctx, night); !errors.Is(err, fencedkv.ErrNotFound) {
				return err // nil: it is done
			}
			if err := work(ctx); err != nil {
				return err
			}
			result = "done"
			return h.Put(ctx, night, []byte("done"))
		})
		switch {
		case errors.Is(err, locks.ErrHeld):
			return "another instance has it"
		case err != nil:
			return err.Error()
		}
		return result
	}

	var night sync.WaitGroup
	results := make(chan string, 5)
	for range 5 {
		night.Go(func() { results <- instance() })
	}
	night.Wait()
	close(results)
	for result := range results {
		fmt.Println(result)
	}
	fmt.Println("at noon:", instance())
	// Unordered output:
	// done
	// another instance has it
	// another instance has it
	// another instance has it
	// another instance has it
	// at noon: done by an earlier instance
}

// work takes longer than the others wait, and stops if the lock is lost.
func work(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
