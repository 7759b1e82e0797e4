package etcdlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
)

func Example() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://etcd-1:2379", "https://etcd-2:2379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	locker, err := etcdlock.New(client, &etcdlock.Options{TTL: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	err = locks.Do(context.Background(), locker, "accounts/42", func(ctx context.Context, lease *locks.Lease) error {
		fmt.Println("send this with every write:", lease.Token())
		return nil
	})
	if err != nil {
		log.Print(err)
	}
}

func ExampleDial() {
	locker, err := etcdlock.Dial("etcd://127.0.0.1:2379", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
	lease, err := locker.TryAcquire(context.Background(), "nightly")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(context.Background())
}
