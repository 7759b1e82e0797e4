package fencedkv_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// The README's first lines of code.
func Example() {
	dir, err := os.MkdirTemp("", "fencedkv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "accounts.db")
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
