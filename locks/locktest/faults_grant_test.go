package locktest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/internal/wire"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// startAgainWhenFree numbers from 1 whenever a free lock is taken.
func startAgainWhenFree() *locktest.Service {
	var mu sync.Mutex
	base := make(map[string]uint64)
	return backend(func(n *wire.Net, b *broken) {
		b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
			mu.Lock()
			defer mu.Unlock()
			free := len(n.Server.Entries(a.Name)) == 0
			t, err := b.Backend.Take(ctx, a)
			if err != nil {
				return t, err
			}
			if free {
				base[a.Name] = t.Seq - 1
			}
			t.Seq -= base[a.Name]
			return t, nil
		}
	})()
}

// withoutValues is ctx with its end and without its values.
func withoutValues(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return ctx, func() {}
	}
	bare, stop := context.Background(), context.CancelFunc(func() {})
	if d, ok := ctx.Deadline(); ok {
		bare, stop = context.WithDeadline(bare, d)
	}
	bare, cancel := context.WithCancelCause(bare)
	detach := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel(context.Cause(ctx))
		}
	})
	return bare, func() { detach(); cancel(nil); stop() }
}

// grantToACrowd grants a lock that three or more want to all but the first.
func grantToACrowd(n *wire.Net, b *broken) {
	b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
		t, err := b.Backend.Take(ctx, a)
		if a.Name == "counter" && errors.Is(err, locks.ErrHeld) && len(n.Server.Entries(a.Name)) > 2 {
			return fence.Token{Lineage: "mem:" + a.Name, Seq: 1 << 40, Holder: a.ID}, nil
		}
		return t, err
	}
}

// reentrant hands a lock that a client has to its next Acquire too.
func reentrant(l *brokenLocker) {
	var mu sync.Mutex
	live := make(map[string]*locks.Lease)
	l.acquire = func(ctx context.Context, name string) (*locks.Lease, error) {
		mu.Lock()
		lease := live[name]
		mu.Unlock()
		if lease != nil && lease.Context().Err() == nil {
			again, _ := locks.NewLease(ctx, locks.Grant{
				Name: name, Token: lease.Token(), Sent: time.Now(), Validity: time.Until(lease.Deadline()),
			})
			return again, nil
		}
		lease, err := l.Locker.Acquire(ctx, name)
		if err == nil {
			mu.Lock()
			live[name] = lease
			mu.Unlock()
		}
		return lease, err
	}
}

// stampede wakes every waiter of a service on each release.
func stampede() *locktest.Service {
	var mu sync.Mutex
	released := make(chan struct{})
	return backend(func(_ *wire.Net, b *broken) {
		b.release = func(ctx context.Context, name, id string) error {
			err := b.Backend.Release(ctx, name, id)
			mu.Lock()
			defer mu.Unlock()
			close(released)
			released = make(chan struct{})
			return err
		}
		b.wait = func(ctx context.Context, name, id string) error {
			mu.Lock()
			next := released
			mu.Unlock()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				select {
				case <-next:
					cancel()
				case <-stop:
				}
			}()
			err := b.Backend.Wait(ctx, name, id)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
	})()
}
