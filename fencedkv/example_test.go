package fencedkv_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// scratch returns a path for an example's store.
func scratch() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "fencedkv")
	if err != nil {
		log.Fatal(err)
	}
	return filepath.Join(dir, "accounts.db"), func() { os.RemoveAll(dir) }
}

// openScratch opens a store as the first example does, where it can be removed.
func openScratch() (store *fencedkv.Store, remove func()) {
	path, removePath := scratch()
	store, err := fencedkv.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	return store, func() {
		store.Close()
		removePath()
	}
}

// Opening a store and writing to it with the token of a lock.
func Example_openAndWrite() {
	path, remove := scratch()
	defer remove()
	ctx := context.Background()

	store, err := fencedkv.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	account := store.Resource("accounts/42")
	token := fence.Token{Lineage: "locks/accounts/42", Seq: 33, Holder: "client-a"}

	// First shut out everybody who held the lock before.
	if err := account.Raise(ctx, token); err != nil {
		log.Fatal(err)
	}
	if err := account.Put(ctx, token, []byte("balance"), []byte("100")); err != nil {
		log.Fatal(err)
	}
	balance, err := account.Get(ctx, []byte("balance"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("balance %s\n", balance)
	// Output: balance 100
}

// A lock client of any kind will do if it gives a number that grows with every
// grant.
func Example_anyLockClient() {
	store, remove := openScratch()
	defer remove()
	ctx := context.Background()
	account := store.Resource("accounts/42")

	var revision uint64 = 34 // what the client calls revision, epoch, index, ...
	fmt.Println(account.Put(ctx, fence.Number(revision), []byte("balance"), []byte("70")))

	err := account.Put(ctx, fence.Number(33), []byte("balance"), []byte("50"))
	fmt.Println(errors.Is(err, fence.ErrStale))
	// Output:
	// <nil>
	// true
}

// A refusal says what was offered and what was admitted before. The work is not
// to be repeated with the same token: whoever holds the lock now does it.
func Example_refusal() {
	store, remove := openScratch()
	defer remove()
	ctx := context.Background()
	account := store.Resource("accounts/42")

	a := fence.Token{Lineage: "locks/accounts/42", Seq: 33, Holder: "client-a"}
	b := fence.Token{Lineage: "locks/accounts/42", Seq: 34, Holder: "client-b"}
	if err := account.Put(ctx, b, []byte("balance"), []byte("70")); err != nil {
		log.Fatal(err)
	}

	err := account.Put(ctx, a, []byte("balance"), []byte("50"))
	var rejected *fence.RejectedError
	switch {
	case errors.As(err, &rejected) && errors.Is(err, fence.ErrStale):
		fmt.Printf("%s: %s was superseded by %s\n", rejected.Resource, rejected.Offered.Holder, rejected.Mark.Holder)
	case errors.As(err, &rejected):
		fmt.Println("an operator must look at this:", err)
	case errors.Is(err, fencedkv.ErrUnknownOutcome):
		fmt.Println("it may or may not be written:", err)
	default:
		fmt.Println("not written:", err)
	}
	// Output: accounts/42: client-a was superseded by client-b
}

// Update reads and writes in one transaction.
func ExampleResource_Update() {
	store, remove := openScratch()
	defer remove()
	visits := store.Resource("visits")

	for range 3 {
		err := visits.Update(context.Background(), fence.Number(1), func(_ context.Context, tx *fencedkv.Tx) error {
			old, err := tx.Get([]byte("count"))
			if err != nil && !errors.Is(err, fencedkv.ErrNotFound) {
				return err
			}
			n, _ := strconv.Atoi(string(old))
			return tx.Put([]byte("count"), []byte(strconv.Itoa(n+1)))
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	count, err := visits.Get(context.Background(), []byte("count"))
	fmt.Printf("%s %v\n", count, err)
	// Output: 3 <nil>
}

// View reads a consistent snapshot, here the newest two entries.
func ExampleResource_View() {
	store, remove := openScratch()
	defer remove()
	ctx := context.Background()
	journal := store.Resource("journal")
	for _, day := range []string{"2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"} {
		if err := journal.Put(ctx, fence.Number(1), []byte(day), []byte("done")); err != nil {
			log.Fatal(err)
		}
	}

	err := journal.View(ctx, func(_ context.Context, tx *fencedkv.ReadTx) error {
		for kv, err := range tx.Scan(fencedkv.Range{Prefix: []byte("2026-"), Reverse: true, Limit: 2}) {
			if err != nil {
				return err
			}
			fmt.Printf("%s %s\n", kv.Key, kv.Value)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 2026-02-02 done
	// 2026-02-01 done
}

// A transfer between two accounts, of which each has a lock of its own.
func ExampleStore_Update() {
	store, remove := openScratch()
	defer remove()
	ctx := context.Background()

	claims := []fencedkv.Claim{
		{Resource: "accounts/42", Token: fence.Number(7)},
		{Resource: "accounts/43", Token: fence.Number(12)},
	}
	err := store.Update(ctx, claims, func(_ context.Context, tx *fencedkv.MultiTx) error {
		for name, balance := range map[string]string{"accounts/42": "70", "accounts/43": "130"} {
			account, err := tx.Resource(name)
			if err != nil {
				return err
			}
			if err := account.Put([]byte("balance"), []byte(balance)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for info, err := range store.Resources(ctx) {
		fmt.Println(info.Name, info.Highest.Seq, err)
	}
	// Output:
	// accounts/42 7 <nil>
	// accounts/43 12 <nil>
}

// Exclusive does what a holder has to do in the right order.
func ExampleResource_Exclusive() {
	store, remove := openScratch()
	defer remove()
	ctx := context.Background()
	locker, err := memlock.New(nil) // or a Redis, etcd or ZooKeeper one
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(ctx)

	account := store.Resource("accounts/42")
	err = account.Exclusive(ctx, locker, func(ctx context.Context, held *fencedkv.Held) error {
		if err := held.Put(ctx, []byte("balance"), []byte("100")); err != nil {
			return err
		}
		return held.Put(ctx, []byte("owner"), []byte("alice"))
	})
	if err != nil {
		log.Fatal(err)
	}
	owner, err := account.Get(ctx, []byte("owner"))
	fmt.Printf("%s %v\n", owner, err)
	// Output: alice <nil>
}
