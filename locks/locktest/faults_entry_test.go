package locktest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/internal/wire"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// newIDPerRepeat gives a Take that follows a failed one another id, and keeps
// cleanup whole.
func newIDPerRepeat(_ *wire.Net, b *broken) {
	var mu sync.Mutex
	failed := make(map[string]bool)
	ids := make(map[string]string)
	now := func(id string) string {
		mu.Lock()
		defer mu.Unlock()
		if other, ok := ids[id]; ok {
			return other
		}
		return id
	}
	b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
		mu.Lock()
		if failed[a.ID] {
			failed[a.ID] = false
			ids[a.ID] = locks.NewHolder()
		}
		mu.Unlock()
		id := a.ID
		a.ID = now(id)
		t, err := b.Backend.Take(ctx, a)
		if err != nil && !errors.Is(err, locks.ErrHeld) {
			mu.Lock()
			failed[id] = true
			mu.Unlock()
		}
		return t, err
	}
	b.wait = func(ctx context.Context, name, id string) error { return b.Backend.Wait(ctx, name, now(id)) }
	b.renew = func(ctx context.Context, name, id string, ttl time.Duration) error {
		return b.Backend.Renew(ctx, name, now(id), ttl)
	}
	b.release = func(ctx context.Context, name, id string) error {
		err := b.Backend.Release(ctx, name, now(id))
		if now(id) != id {
			return errors.Join(err, b.Backend.Release(ctx, name, id))
		}
		return err
	}
}

// leaveWaiters removes no entry but that of a holder.
func leaveWaiters(n *wire.Net, b *broken) {
	b.release = func(ctx context.Context, name, id string) error {
		for _, e := range n.Server.Entries(name) {
			if e.ID == id && e.Token.IsZero() {
				return nil
			}
		}
		return b.Backend.Release(ctx, name, id)
	}
}

// leaveUnheard removes no entry of which the client has heard nothing. It is
// slow to repeat a request, so that the kit cancels before it has heard.
func leaveUnheard(_ *wire.Net, b *broken) {
	var heard, failed sync.Map
	b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
		if _, ok := failed.Load(a.ID); ok {
			select {
			case <-ctx.Done():
				return fence.Token{}, ctx.Err()
			case <-time.After(200 * time.Millisecond):
			}
		}
		t, err := b.Backend.Take(ctx, a)
		if err == nil || errors.Is(err, locks.ErrHeld) {
			heard.Store(a.ID, true)
		} else {
			failed.Store(a.ID, true)
		}
		return t, err
	}
	b.release = func(ctx context.Context, name, id string) error {
		if _, ok := heard.Load(id); !ok {
			return nil
		}
		return b.Backend.Release(ctx, name, id)
	}
}

// trustTheWait takes the end of a wait for a grant.
func trustTheWait(n *wire.Net, b *broken) {
	var believed sync.Map
	b.wait = func(ctx context.Context, name, id string) error {
		err := b.Backend.Wait(ctx, name, id)
		if errors.Is(err, locks.ErrLost) {
			believed.Store(id, true)
			return nil
		}
		return err
	}
	b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
		if _, ok := believed.Load(a.ID); ok {
			return fence.Token{Lineage: "mem:" + a.Name, Seq: 1 << 40, Holder: a.ID}, nil
		}
		return b.Backend.Take(ctx, a)
	}
	b.renew = func(ctx context.Context, name, id string, ttl time.Duration) error {
		if _, ok := believed.Load(id); ok {
			return nil
		}
		return b.Backend.Renew(ctx, name, id, ttl)
	}
	b.release = func(ctx context.Context, name, id string) error {
		if _, ok := believed.Load(id); ok {
			return nil
		}
		return b.Backend.Release(ctx, name, id)
	}
}

// granted remembers the ids that were granted the lock.
func granted(b *broken) *sync.Map {
	var ids sync.Map
	b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
		t, err := b.Backend.Take(ctx, a)
		if err == nil {
			ids.Store(a.ID, true)
		}
		return t, err
	}
	return &ids
}

// releaseAnybody lets a holder's release delete the present holder's entry.
func releaseAnybody(n *wire.Net, b *broken) {
	ids := granted(b)
	b.release = func(ctx context.Context, name, id string) error {
		err := b.Backend.Release(ctx, name, id)
		if _, ok := ids.Load(id); ok && errors.Is(err, locks.ErrLost) {
			n.Server.Expire(name)
		}
		return err
	}
}

// waitBelow finds a lock held while there is an entry of a name below its own, as
// one does that looks for entries by the name as a prefix.
func waitBelow(n *wire.Net, b *broken) {
	var mu sync.Mutex
	var taken []string
	b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, other := range taken {
			if strings.HasPrefix(other, a.Name+"/") && len(n.Server.Entries(other)) > 0 {
				return fence.Token{}, locks.ErrHeld
			}
		}
		taken = append(taken, a.Name)
		return b.Backend.Take(ctx, a)
	}
}
