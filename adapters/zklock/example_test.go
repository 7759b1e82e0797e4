package zklock_test

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
)

// Five instances run this; one of them does the job.
func Example() {
	locker, err := zklock.Dial("zk://zoo1:2181,zoo2:2181,zoo3:2181/locks", &zklock.Options{
		SessionTimeout: 15 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	lease, err := locker.TryAcquire(context.Background(), "nightly report")
	if errors.Is(err, locks.ErrHeld) {
		log.Print("another instance is at it")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(context.Background())

	// The work goes on while the lease can be trusted, and every write carries
	// the token, because a lease can run out while its holder believes in it.
	report(lease.Context())
	log.Print("done with token ", lease.Token())
}

func report(context.Context) {}
