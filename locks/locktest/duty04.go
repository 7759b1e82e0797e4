package locktest

import "github.com/fencedkv/fencedkv/locks"

const ownEntry = "After waiting, Acquire checks that its own entry still exists and is the one it made."

var ownEntryAfterTheWait = []part{
	{"waiters-deleted", ownEntry, "DeleteWaiters Entries", waitersDeleted},
	{"waiters-deleted-lock-taken", ownEntry, "DeleteWaiters Entries", waitersDeletedLockTaken},
}

// waitersDeleted: a waiter whose entry is gone may queue again or give up, but
// what it returns must be held.
func waitersDeleted(k *kit) {
	a, b, c := k.locker(k.long()), k.locker(k.long()), k.locker(k.long())
	for range 3 {
		holder := k.acquire(a, lock)
		ctx, stop := k.patient()
		waiter := start(ctx, b.Acquire, lock)
		k.queued(lock, 2)
		k.DeleteWaiters(k.T, lock)
		k.release(holder)
		o := k.result(waiter, "its entry was deleted and the lock released")
		stop()
		if o.err == nil {
			k.held(c, lock)
			k.release(o.lease)
		}
		k.entries(lock, 0)
	}
}

// waitersDeletedLockTaken: the lock goes to somebody else meanwhile.
func waitersDeletedLockTaken(k *kit) {
	a, b, c, d := k.locker(k.long()), k.locker(k.long()), k.locker(k.long()), k.locker(k.long())
	holder := k.acquire(a, lock)
	ctx, stop := k.patient()
	defer stop()
	outcomes := make(chan outcome, 2)
	take := func(l locks.Locker) {
		lease, err := l.Acquire(ctx, lock)
		outcomes <- outcome{lease, err}
	}
	go take(b)
	k.queued(lock, 2)
	k.DeleteWaiters(k.T, lock)
	k.release(holder)
	go take(c)

	granted := 0
	for range 2 {
		o := k.result(outcomes, "the lock was released")
		if o.err != nil {
			continue
		}
		granted++
		for range 3 {
			k.held(d, lock) // takes as long as the other client needs to go wrong
		}
		select {
		case second := <-outcomes:
			if second.err == nil {
				k.broken("tokens %v and %v are held at the same time", o.lease.Token(), second.lease.Token())
			}
			outcomes <- second
		default:
		}
		k.release(o.lease)
	}
	if granted == 0 {
		k.broken("neither the waiter nor the client that came later got the lock")
	}
	k.entries(lock, 0)
}
