package fencedkv

import (
	"context"

	"github.com/fencedkv/fencedkv/locks"
)

// Exclusive acquires the lock that is named like the resource, raises the mark
// to its token, runs fn, waits for the writes of fn that are still in flight and
// releases the lock.
//
// It waits for the lock until ctx ends. The context that fn gets ends with ctx
// or with the lease, whichever comes first; its cause is then an error over
// locks.ErrLost. It is no context of a store function: fn may call the store.
//
// Its errors are those of locks.Do: the locker's, the refusal of the token, that
// of fn joined with an error over locks.ErrLost if the lease was lost before fn
// returned, or that of the release. If fn panics, the lock is released and the
// panic goes on.
func (r *Resource) Exclusive(ctx context.Context, locker locks.Locker, fn func(ctx context.Context, h *Held) error) error {
	if err := r.check(); err != nil {
		return err
	}
	switch {
	case fn == nil:
		return errNoFunction
	case isNil(locker):
		return &ArgumentError{Argument: "locker", Problem: "is nil"}
	}
	// The call as a whole is not one that Close waits for: fn may run for hours.
	if err := r.store.enter(ctx); err != nil {
		return err
	}
	r.store.leave()
	if r.store.running.hooks.here() {
		return ErrNested
	}
	return locks.Do(ctx, locker, r.name, func(ctx context.Context, lease *locks.Lease) error {
		if err := r.Raise(ctx, lease.Token()); err != nil {
			return err
		}
		h := &Held{resource: r, lease: lease}
		defer h.finish()
		return fn(ctx, h)
	})
}
