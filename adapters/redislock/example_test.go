package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
)

func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, DialerRetries: 1})
	defer client.Close()
	locker, err := redislock.New(client, &redislock.Options{Prefix: "shop", TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer locker.Close(ctx)

	err = locks.Do(ctx, locker, "accounts/42", func(ctx context.Context, lease *locks.Lease) error {
		// Send the token with every write; ctx ends when the lease does.
		fmt.Println("working with token", lease.Token())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

// The simplest way in, and what to do when another has the lock.
func ExampleDial() {
	locker, err := redislock.Dial("rediss://user:password@redis.example.com:6380/0", nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer locker.Close(ctx)

	lease, err := locker.TryAcquire(ctx, "nightly-report")
	if errors.Is(err, locks.ErrHeld) {
		fmt.Println("another instance has it")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)
	fmt.Println("running with token", lease.Token())
}

// A primary that Sentinel finds, and a grant that one replica has confirmed.
func ExampleNew_sentinel() {
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:            "main",
		SentinelAddrs:         []string{"10.0.0.1:26379", "10.0.0.2:26379", "10.0.0.3:26379"},
		ContextTimeoutEnabled: true,
		DialerRetries:         1,
	})
	defer client.Close()
	locker, err := redislock.New(client, &redislock.Options{WaitReplicas: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
}

// Five servers that know nothing of each other, of which any two may be away.
func ExampleDialRedlock() {
	locker, err := redislock.DialRedlock([]string{
		"redis://10.0.0.1:6379",
		"redis://10.0.0.2:6379",
		"redis://10.0.0.3:6379",
		"redis://10.0.0.4:6379",
		"redis://10.0.0.5:6379",
	}, &redislock.RedlockOptions{Prefix: "shop", TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer locker.Close(ctx)

	err = locks.Do(ctx, locker, "accounts/42", func(ctx context.Context, lease *locks.Lease) error {
		fmt.Println("working with token", lease.Token())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
