package locktest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/internal/wire"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// renewAnybody takes any holder's entry for one's own when renewing.
func renewAnybody(n *wire.Net, b *broken) {
	b.renew = func(ctx context.Context, name, id string, ttl time.Duration) error {
		err := b.Backend.Renew(ctx, name, id, ttl)
		if errors.Is(err, locks.ErrLost) && len(n.Server.Entries(name)) > 0 {
			return nil
		}
		return err
	}
}

// recreate takes the lock again when a renewal finds it free.
func recreate(_ *wire.Net, b *broken) {
	var ids sync.Map
	now := func(id string) string {
		if other, ok := ids.Load(id); ok {
			return other.(string)
		}
		return id
	}
	b.renew = func(ctx context.Context, name, id string, ttl time.Duration) error {
		err := b.Backend.Renew(ctx, name, now(id), ttl)
		if !errors.Is(err, locks.ErrLost) {
			return err
		}
		again := locks.NewHolder()
		if _, taken := b.Backend.Take(ctx, memlock.Attempt{Name: name, ID: again, TTL: ttl}); taken != nil {
			return err
		}
		ids.Store(id, again)
		return nil
	}
	b.release = func(ctx context.Context, name, id string) error { return b.Backend.Release(ctx, name, now(id)) }
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
