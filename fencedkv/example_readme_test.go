package fencedkv_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// The README's first lines of code.
func Example() {
	path, remove := scratch()
	defer remove()
	ctx := context.Background()
	key := []byte("balance")

	store, err := fencedkv.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	account := store.Resource("accounts/42")

	err = account.Put(ctx, fence.Number(34), key, []byte("70")) // the lock's 34th grant
	fmt.Println(err)
	err = account.Put(ctx, fence.Number(33), key, []byte("20")) // a holder that slept
	var rejected *fence.RejectedError
	fmt.Println(errors.As(err, &rejected), errors.Is(err, fence.ErrStale))
	// Output:
	// <nil>
	// true true
}

// The README's second piece of code: a withdrawal under the lock of an adapter.
func Example_withdraw() {
	store, remove := openScratch()
	defer remove()
	ctx := context.Background()
	locker, err := memlock.New(nil) // in production redislock.Dial, etcdlock.Dial or zklock.Dial
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(ctx)

	shared := store.Resource("accounts/43")
	err = shared.Exclusive(ctx, locker, func(ctx context.Context, h *fencedkv.Held) error {
		balance := 100
		switch value, err := h.Get(ctx, []byte("balance")); {
		case err == nil:
			balance, err = strconv.Atoi(string(value))
			if err != nil {
				return err
			}
		case !errors.Is(err, fencedkv.ErrNotFound):
			return err
		}
		return h.Put(ctx, []byte("balance"), []byte(strconv.Itoa(balance-30)))
	})
	fmt.Println(err)
	value, err := shared.Get(ctx, []byte("balance"))
	fmt.Println(string(value), err)
	// Output:
	// <nil>
	// 70 <nil>
}
