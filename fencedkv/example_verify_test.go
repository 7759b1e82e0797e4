package fencedkv_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// A store that asks the lock service before it believes a higher number. Any
// Locker will do in the place of memlock's, and several at once.
func Example_verification() {
	path, remove := scratch()
	defer remove()
	ctx := context.Background()

	locker, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(ctx)
	store, err := fencedkv.Open(path, &fencedkv.Options{Verifiers: []fence.Verifier{locker}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	account := store.Resource("accounts/42")

	var token fence.Token
	err = account.Exclusive(ctx, locker, func(ctx context.Context, h *fencedkv.Held) error {
		token = h.Token()
		return h.Put(ctx, []byte("balance"), []byte("70"))
	})
	fmt.Println(err)

	token.Seq += 1000 // nobody was granted that
	err = account.Put(ctx, token, []byte("balance"), []byte("50"))
	var unverified *fence.UnverifiedError
	switch {
	case errors.Is(err, fence.ErrNoAnswer):
		fmt.Println("try again when the lock service is back")
	case errors.As(err, &unverified):
		fmt.Println(unverified.Reason)
	}

	err = account.Put(ctx, fence.Number(1000), []byte("balance"), []byte("50"))
	fmt.Println(errors.Is(err, fence.ErrLineage)) // order comes first
	// Output:
	// <nil>
	// fence: not the current grant
	// true
}
