package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

const (
	onlyUpdates = "Renewal only updates: it never re-creates a lost lock."
	terminal    = "A lost lease is terminal, a handle is single use."
	renewalEnds = "Renewal ends with Release, loss, Close, MaxHold, or the context of locks.Do."
	boundsWait  = "Acquire's context bounds the waiting only."
	closeOwns   = "Close releases every lease and ends all renewals and watches; no goroutine is left when it returns nil."
)

var renewalOnlyUpdates = []part{
	{"renewal-keeps", "Renewal updates the lease time while the holder lives.", "", renewalKeeps},
	{"never-recreates", onlyUpdates, "DeleteEntry Entries", neverRecreates},
	{"lost-is-terminal", terminal, "Cut", lostIsTerminal},
	{"released-is-terminal", terminal, "Entries", releasedIsTerminal},
	{"max-hold", renewalEnds, "", maxHold},
	{"do-context", renewalEnds, "", doContext},
	{"acquire-context", boundsWait, "", acquireContext},
	{"close-releases", closeOwns, "", closeReleases},
	{"close-wakes-waiters", "An Acquire that waits when Close is called returns an error over ErrClosed.", "", closeWakesWaiters},
	{"closed-refuses", "Calls after Close return an error over ErrClosed; Close again waits for the same end.", "", closedRefuses},
	{"close-with-its-context", "Close returns when its context ends.", "Cut", closeWithItsContext},
	{"close-leaves-no-goroutine", closeOwns, "", closeLeavesNoGoroutine},
}

func renewalKeeps(k *kit) {
	a, b := k.locker(Config{}), k.locker(Config{})
	lease := k.acquire(a, lock)
	whole := time.Now().Add(2 * k.TTL)
	k.eventually("twice the lease time has passed", func() bool {
		if err := lease.Context().Err(); err != nil {
			k.broken("the lease of a live holder ended: %v", context.Cause(lease.Context()))
		}
		return time.Now().After(whole)
	})
	k.held(b, lock)
	k.release(lease)
}

func neverRecreates(k *kit) {
	lease := k.acquire(k.locker(Config{}), lock)
	k.DeleteEntry(k.T, lock)
	deleted := lease.Deadline()
	k.within(k.patience(), func() bool {
		return lease.Context().Err() != nil || lease.Deadline().After(deleted) || k.Entries(k.T, lock) > 0
	})
	if n := k.Entries(k.T, lock); n > 0 {
		k.broken("after its entry was deleted a renewal made %d again", n)
	}
	k.free(k.locker(Config{}), lock)
}

func lostIsTerminal(k *kit) {
	a, b := k.locker(Config{}), k.locker(Config{})
	lease := k.acquire(a, lock)
	heal := k.cut(a)
	k.lost(lease)
	cause, deadline := context.Cause(lease.Context()), lease.Deadline()
	k.free(b, lock) // now the service has forgotten it too
	heal()
	other := k.acquire(a, "other")
	k.renewed(other, 2) // the time in which the lost lease might come back
	if got := context.Cause(lease.Context()); !errors.Is(got, cause) || !errors.Is(got, locks.ErrLost) {
		k.broken("the cause of a lost lease was %v and is %v", cause, got)
	}
	if got := lease.Deadline(); !got.Equal(deadline) {
		k.broken("the deadline of a lost lease moved by %v", got.Sub(deadline))
	}
	for range 2 {
		if err := k.releaseWith(context.Background(), lease); !errors.Is(err, locks.ErrLost) {
			k.broken("Release of a lost lease: got %v, want an error over locks.ErrLost", err)
		}
	}
	k.entries(lock, 0)
	k.free(b, lock)
	k.release(other)
}

func releasedIsTerminal(k *kit) {
	a := k.locker(Config{})
	lease := k.acquire(a, lock)
	k.renewed(lease, 1)
	k.release(lease)
	k.release(lease)
	other := k.acquire(a, "other")
	end := time.Now().Add(k.TTL)
	for range 3 {
		k.renewed(other, 1) // the time in which a renewal might revive the entry
	}
	k.eventually("a lease time has passed", func() bool { return time.Now().After(end) })
	if n := k.Entries(k.T, lock); n != 0 {
		k.broken("a lease time after the release the lock has %d entries, want 0", n)
	}
	if err := lease.Context().Err(); err == nil {
		k.broken("the context of a released lease lives again")
	}
	k.release(other)
}

func maxHold(k *kit) {
	a, b := k.locker(Config{MaxHold: k.TTL / 2}), k.locker(Config{})
	lease := k.acquire(a, lock)
	k.free(b, lock)
	k.lost(lease)
}

func doContext(k *kit) {
	a, b := k.locker(Config{}), k.locker(Config{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leases, finish, done := make(chan *locks.Lease, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- locks.Do(ctx, a, lock, func(ctx context.Context, lease *locks.Lease) error {
			leases <- lease
			<-finish // a function that does not look at its context
			return nil
		})
	}()
	var lease *locks.Lease
	select {
	case lease = <-leases:
	case err := <-done:
		k.broken("Do on a free lock: %v", err)
	}
	defer func() {
		select {
		case <-finish:
		default:
			close(finish)
		}
	}()
	k.renewed(lease, 1)
	cancel()
	k.free(b, lock)
	k.ends(lease)
	close(finish)
	if err := <-done; !errors.Is(err, locks.ErrLost) {
		k.broken("Do whose lease was lost: got %v, want an error over locks.ErrLost", err)
	}
}

func acquireContext(k *kit) {
	ctx, cancel := context.WithTimeout(context.Background(), k.patience())
	lease, err := k.locker(Config{}).Acquire(ctx, lock)
	cancel()
	if err != nil {
		k.broken("Acquire of a free lock: %v", err)
	}
	k.renewed(lease, 3)
	k.held(k.locker(Config{}), lock)
	k.release(lease)
}

func (k *kit) close(l locks.Locker) {
	k.Helper()
	if err := k.closed(l); err != nil {
		k.broken("Close: %v", err)
	}
}

func closeReleases(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	one, two := k.acquire(a, lock), k.acquire(a, "other")
	k.close(a)
	for _, lease := range []*locks.Lease{one, two} {
		if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrReleased) {
			k.broken("the cause of a lease's context after Close is %v, want an error over locks.ErrReleased", cause)
		}
		k.entries(lease.Name(), 0)
		k.free(b, lease.Name())
	}
}

func closeWakesWaiters(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	holder := k.acquire(a, lock)
	ctx, stop := k.patient()
	defer stop()
	waiter := start(ctx, b.Acquire, lock)
	k.queued(lock, 2)
	k.close(b)
	if o := k.result(waiter, "Close"); !errors.Is(o.err, locks.ErrClosed) {
		k.broken("an Acquire that waited got %v, want an error over locks.ErrClosed", o.err)
	}
	k.release(holder)
}

func closedRefuses(k *kit) {
	a := k.locker(k.long())
	k.free(a, lock)
	k.close(a)
	ctx, stop := k.patient()
	defer stop()
	for _, take := range []takes{a.Acquire, a.TryAcquire} {
		if _, err := take(ctx, lock); !errors.Is(err, locks.ErrClosed) {
			k.broken("a closed Locker returned %v, want an error over locks.ErrClosed", err)
		}
	}
	k.close(a)
	k.free(k.locker(k.long()), lock)
}

func closeWithItsContext(k *kit) {
	a := k.locker(Config{})
	k.acquire(a, lock)
	k.cut(a)
	ctx, cancel := context.WithTimeout(context.Background(), k.TTL/4)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- a.Close(ctx) }()
	select {
	case err := <-closed:
		if err == nil {
			k.broken("Close of a client that is cut off and holds a lock: got nil, want an error")
		}
	case <-time.After(k.patience()):
		k.broken("Close has not returned %v after its context ended", k.patience())
	}
}
