package locktest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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

// renewThreeTimes does not renew a grant a fourth time.
func renewThreeTimes(_ *wire.Net, b *broken) {
	var counts sync.Map
	b.renew = func(ctx context.Context, name, id string, ttl time.Duration) error {
		count, _ := counts.LoadOrStore(id, new(atomic.Int32))
		n := count.(*atomic.Int32)
		if n.Load() >= 3 {
			return errors.New("renewed often enough")
		}
		err := b.Backend.Renew(ctx, name, id, ttl)
		if err == nil {
			n.Add(1)
		}
		return err
	}
}

// revive takes a lock that was renewed once more for a while, soon after its
// release.
func revive(n *wire.Net, b *broken) {
	var renewed sync.Map
	b.renew = func(ctx context.Context, name, id string, ttl time.Duration) error {
		err := b.Backend.Renew(ctx, name, id, ttl)
		if err == nil {
			renewed.Store(id, ttl)
		}
		return err
	}
	b.release = func(ctx context.Context, name, id string) error {
		err := b.Backend.Release(ctx, name, id)
		if ttl, ok := renewed.LoadAndDelete(id); ok && err == nil {
			late := memlock.Attempt{Name: name, ID: locks.NewHolder(), TTL: 2 * ttl.(time.Duration)}
			time.AfterFunc(ttl.(time.Duration)/8, func() { n.Server.Take(context.Background(), late) })
		}
		return err
	}
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
