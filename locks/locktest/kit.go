package locktest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// kit is what one part of a duty works with.
type kit struct {
	*testing.T
	*Service
	rule string
}

// lock is the name that most parts use; each has a namespace of its own.
const lock = "lock"

// broken fails the part with the duty in words.
func (k *kit) broken(format string, args ...any) {
	k.Helper()
	k.Fatalf("the contract says: %s\n\tseen instead: %s", k.rule, fmt.Sprintf(format, args...))
}

func (k *kit) patience() time.Duration {
	if k.Patience > 0 {
		return k.Patience
	}
	return 10*k.TTL + 20*time.Second
}

// long is a lease time within which nothing runs out, so that what goes away
// was removed.
func (k *kit) long() Config {
	ttl := max(3*k.patience(), 30*time.Second)
	if k.MaxTTL > 0 {
		ttl = min(ttl, k.MaxTTL)
	}
	return Config{TTL: ttl}
}

// locker makes a Locker and closes it at the end.
func (k *kit) locker(c Config) locks.Locker {
	k.Helper()
	l := k.New(k.T, c)
	k.Cleanup(func() {
		if err := k.closed(l); err != nil {
			k.Logf("closing a Locker at the end: %v", err)
		}
	})
	return l
}

// closed returns what Close returns, or an error if it does not.
func (k *kit) closed(l locks.Locker) error {
	ctx, cancel := context.WithTimeout(context.Background(), k.patience())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Close(ctx) }()
	select {
	case err := <-done:
		return err
	case <-time.After(2 * k.patience()):
		return fmt.Errorf("its Close has not returned %v after its context ended", k.patience())
	}
}

// cut cuts a Locker off, until heal is called or the part ends.
func (k *kit) cut(l locks.Locker) (heal func()) {
	heal = k.Cut(k.T, l)
	k.Cleanup(heal)
	return heal
}

// patient returns a context that ends when patience does, unless stop is called
// before, and at the end of the part. Lockers are given contexts that live on
// after Acquire, because an adapter might hang its lease on them.
func (k *kit) patient() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := time.AfterFunc(k.patience(), func() { cancel(errors.New("the kit's patience ended")) })
	k.Cleanup(func() { cancel(nil) })
	return ctx, func() { timer.Stop() }
}

// acquire takes a lock that is free, or will be.
func (k *kit) acquire(l locks.Locker, name string) *locks.Lease {
	k.Helper()
	ctx, stop := k.patient()
	defer stop()
	o := k.result(start(ctx, l.Acquire, name), "its context ended")
	if o.err != nil {
		k.broken("Acquire of %.40q, which nobody else has: %v", name, o.err)
	}
	return o.lease
}

// release gives back a lease that is held.
func (k *kit) release(lease *locks.Lease) {
	k.Helper()
	if err := k.releaseWith(context.Background(), lease); err != nil {
		k.broken("Release of a lease that is held: %v", err)
	}
}

// releaseWith returns what Release returns, and fails if it does not.
func (k *kit) releaseWith(ctx context.Context, lease *locks.Lease) error {
	k.Helper()
	released := make(chan error, 1)
	go func() { released <- lease.Release(ctx) }()
	select {
	case err := <-released:
		return err
	case <-time.After(k.patience()):
		k.broken("Release has not returned after %v", k.patience())
		return nil
	}
}

// held demands that somebody has the lock.
func (k *kit) held(l locks.Locker, name string) {
	k.Helper()
	lease, err := k.try(l, name)
	if err == nil {
		k.broken("another client took the lock %.40q with token %v while it was held", name, lease.Token())
	}
	if !errors.Is(err, locks.ErrHeld) {
		k.broken("TryAcquire of the held lock %.40q: got %v, want an error over locks.ErrHeld", name, err)
	}
}

// free demands that the lock can be had, and gives it back.
func (k *kit) free(l locks.Locker, name string) {
	k.Helper()
	k.release(k.acquire(l, name))
}

// eventually waits for a condition.
func (k *kit) eventually(what string, cond func() bool) {
	k.Helper()
	if !k.within(k.patience(), cond) {
		k.broken("after %v still not true: %s", k.patience(), what)
	}
}

// within looks at cond until it is true, at most for d.
func (k *kit) within(d time.Duration, cond func() bool) bool {
	deadline := time.After(d)
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			return cond()
		}
	}
	return true
}

// entries waits until the service stores n entries for the lock, if the factory
// can count them.
func (k *kit) entries(name string, n int) {
	k.Helper()
	if k.Entries == nil {
		return
	}
	var got int
	if !k.within(k.patience(), func() bool { got = k.Entries(k.T, name); return got == n }) {
		k.broken("the service has %d entries for the lock, want %d", got, n)
	}
}

// ends waits until the lease's context has ended.
func (k *kit) ends(lease *locks.Lease) {
	k.Helper()
	select {
	case <-lease.Context().Done():
	case <-time.After(k.patience()):
		k.broken("the lease's context has not ended after %v", k.patience())
	}
}

// lost demands that the lease ends as lost.
func (k *kit) lost(lease *locks.Lease) {
	k.Helper()
	k.ends(lease)
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrLost) || errors.Is(cause, locks.ErrReleased) {
		k.broken("the cause of the lease's context is %v, want an error over locks.ErrLost alone", cause)
	}
}

// renewed waits until the lease was renewed n times more.
func (k *kit) renewed(lease *locks.Lease, n int) {
	k.Helper()
	for range n {
		before := lease.Deadline()
		k.eventually("a renewal moved the deadline of a live lease", func() bool {
			return lease.Deadline().After(before) || lease.Context().Err() != nil
		})
		if err := lease.Context().Err(); err != nil {
			k.broken("a lease that should be renewed ended, or this machine is too busy for a lease time of %v: %v",
				k.TTL, context.Cause(lease.Context()))
		}
	}
}

// runOut lets the lease time of a holder pass without a renewal. After heal the
// holder reaches the service again.
func (k *kit) runOut(l locks.Locker, name string) (heal func()) {
	if k.Expire != nil {
		k.Expire(k.T, name)
		return func() {}
	}
	return k.cut(l)
}

// outcome is the result of an Acquire or TryAcquire in a goroutine.
type outcome struct {
	lease *locks.Lease
	err   error
}

// takes is Locker.Acquire or Locker.TryAcquire.
type takes func(ctx context.Context, name string) (*locks.Lease, error)

// start calls take in a goroutine.
func start(ctx context.Context, take takes, name string) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		lease, err := take(ctx, name)
		c <- outcome{lease, err}
	}()
	return c
}

// try is TryAcquire, which must return.
func (k *kit) try(l locks.Locker, name string) (*locks.Lease, error) {
	k.Helper()
	ctx, stop := k.patient()
	defer stop()
	o := k.result(start(ctx, l.TryAcquire, name), "its context ended")
	return o.lease, o.err
}

// result waits for an Acquire that must return now.
func (k *kit) result(c <-chan outcome, when string) outcome {
	k.Helper()
	select {
	case o := <-c:
		return o
	case <-time.After(2 * k.patience()): // its context may end after one
		k.broken("Acquire has not returned %v after %s", 2*k.patience(), when)
		return outcome{}
	}
}

// queued waits until n clients hold the lock or wait for it, where waiters have
// entries that can be counted.
func (k *kit) queued(name string, n int) {
	k.Helper()
	if k.DeleteWaiters != nil {
		k.entries(name, n)
	}
}
