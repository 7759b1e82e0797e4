package contestant

import (
	"context"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// leaseTime is long enough that no contestant loses a lock. Sessions of
// ZooKeeper cannot be longer than 20 ticks of the server's 200 ms.
const (
	leaseTime   = 10 * time.Second
	sessionTime = 4 * time.Second
)

// Contender is one client of a lock library. Lock waits until it has the lock
// of that name; one call at a time.
type Contender interface {
	Lock(ctx context.Context, name string) (unlock func(context.Context) error, err error)
	Close() error
}

// Open makes a contender.
type Open func(ctx context.Context) (Contender, error)

// ours is a contender of this project.
type ours struct {
	locks.Locker
	after func() error // ends what the Locker does not; may be nil
}

func (o *ours) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	lease, err := o.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

func (o *ours) Close() error {
	err := o.Locker.Close(context.Background())
	if o.after != nil {
		if after := o.after(); err == nil {
			err = after
		}
	}
	return err
}
