package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

const nothingStays = "Nothing stays behind: whatever the exit (cancelled, timed out, connection lost between request and reply), " +
	"the Locker removes its own entry, in the background if the server is away, bounded in time."

var nothingStaysBehind = []part{
	{"cancelled-before", nothingStays, "Entries", cancelledBefore},
	{"cancelled-while-waiting", nothingStays, "Entries", cancelledWhileWaiting},
	{"cancelled-at-the-grant", nothingStays, "Entries", cancelledAtTheGrant},
	{"closed-while-waiting", nothingStays, "Entries", closedWhileWaiting},
	{"timed-out", nothingStays, "Entries", timedOut},
	{"try-of-a-held-lock", nothingStays, "Entries", tryOfAHeldLock},
	{"lost-reply-then-cancelled", nothingStays, "Entries LoseReply Cut", lostReplyThenCancelled},
	{"cut-off-while-taking", nothingStays, "Entries Cut", cutOffWhileTaking},
	{"cut-off-while-waiting", nothingStays, "Entries Cut", cutOffWhileWaiting},
	{"cut-off-holder", nothingStays, "Entries Cut", cutOffHolder},
	{"silent-service" + ownServer, nothingStays, "Entries Pause", silentService},
}

// onlyHolder demands that nothing but the holder's entry is left, and then that
// nothing at all is, and that the lock can be had.
func (k *kit) onlyHolder(holder *locks.Lease, other locks.Locker) {
	k.Helper()
	k.entries(lock, 1)
	k.release(holder)
	k.entries(lock, 0)
	k.free(other, lock)
}

// discard gives back a lease that was granted in the moment of cancellation.
func (k *kit) discard(o outcome) {
	k.Helper()
	if o.err == nil {
		k.release(o.lease)
	}
}

func cancelledBefore(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, take := range []takes{a.Acquire, a.TryAcquire} {
		lease, err := take(ctx, lock)
		k.discard(outcome{lease, err})
		k.entries(lock, 0)
	}
	k.free(b, lock)
}

func cancelledWhileWaiting(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	holder := k.acquire(a, lock)
	for i := range 12 {
		ctx, cancel := context.WithCancel(context.Background())
		waiter := start(ctx, b.Acquire, lock)
		if i == 0 {
			k.queued(lock, 2)
			cancel()
		} else {
			// From before the first request to long after the last one.
			time.AfterFunc(time.Duration(i*i)*250*time.Microsecond, cancel)
		}
		if o := k.result(waiter, "its context was cancelled"); o.err == nil {
			k.broken("Acquire of a held lock returned the token %v", o.lease.Token())
		}
		cancel()
	}
	k.onlyHolder(holder, b)
}

func cancelledAtTheGrant(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	for i := range 12 {
		holder := k.acquire(a, lock)
		ctx, cancel := context.WithCancel(context.Background())
		waiter := start(ctx, b.Acquire, lock)
		k.queued(lock, 2)
		if i == 0 {
			cancel()
			k.discard(k.result(waiter, "its context was cancelled"))
			k.release(holder)
		} else {
			time.AfterFunc(time.Duration(i)*200*time.Microsecond, cancel)
			k.release(holder)
			k.discard(k.result(waiter, "its context was cancelled"))
		}
		cancel()
		k.entries(lock, 0)
	}
	k.free(a, lock)
}

func closedWhileWaiting(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	holder := k.acquire(a, lock)
	ctx, stop := k.patient()
	defer stop()
	waiter := start(ctx, b.Acquire, lock)
	k.queued(lock, 2)
	k.close(b)
	k.discard(k.result(waiter, "Close"))
	k.onlyHolder(holder, a)
}

func timedOut(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	holder := k.acquire(a, lock)
	for _, d := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		if o := k.result(start(ctx, b.Acquire, lock), "its context ended"); o.err == nil {
			k.broken("Acquire of a held lock returned the token %v", o.lease.Token())
		}
		cancel()
	}
	k.onlyHolder(holder, b)
}

func tryOfAHeldLock(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	holder := k.acquire(a, lock)
	for range 3 {
		k.held(b, lock)
	}
	k.onlyHolder(holder, b)
}

func lostReplyThenCancelled(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	k.free(a, lock)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	k.LoseReply(k.T, a)
	taker := start(ctx, a.Acquire, lock)
	// The entry is seen before or after the repeated request: both are good.
	k.within(k.patience(), func() bool { return k.Entries(k.T, lock) > 0 })
	heal := k.cut(a)
	cancel()
	k.discardUnheard(k.result(taker, "its context was cancelled"))
	heal()
	k.entries(lock, 0)
	k.free(b, lock)
	k.release(k.reacquire(a))
}

// discardUnheard is discard while the client may be cut off.
func (k *kit) discardUnheard(o outcome) {
	if o.err == nil {
		go func() { _ = o.lease.Release(context.Background()) }()
	}
}

func cutOffWhileTaking(k *kit) {
	a, b := k.locker(Config{}), k.locker(Config{})
	k.free(a, lock)
	heal := k.cut(a)
	ctx, cancel := context.WithTimeout(context.Background(), k.TTL/2)
	defer cancel()
	o := k.result(start(ctx, a.Acquire, lock), "its context ended, with the client cut off")
	if o.err == nil {
		k.broken("a client that was cut off got the token %v", o.lease.Token())
	}
	heal()
	k.entries(lock, 0)
	k.free(b, lock)
	k.release(k.reacquire(a))
}

func cutOffWhileWaiting(k *kit) {
	a, b, c := k.locker(Config{}), k.locker(Config{}), k.locker(Config{})
	holder := k.acquire(a, lock)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	waiter := start(ctx, b.Acquire, lock)
	k.queued(lock, 2)
	heal := k.cut(b)
	cancel()
	if o := k.result(waiter, "its context was cancelled, with the client cut off"); o.err == nil {
		k.broken("a client that was cut off got the token %v of a held lock", o.lease.Token())
	}
	k.release(holder)
	k.free(c, lock) // at the latest when the service has forgotten the entry
	heal()
	k.entries(lock, 0)
	k.release(k.reacquire(b))
}

// cutOffHolder releases a lock through a dead connection and uses the Locker
// again: a lease or session with an entry of unknown fate takes no new grant.
func cutOffHolder(k *kit) {
	a, b := k.locker(Config{}), k.locker(Config{})
	lease := k.acquire(a, lock)
	heal := k.cut(a)
	released := make(chan error, 1)
	go func() { released <- lease.Release(context.Background()) }()
	k.free(b, lock)
	heal()
	select {
	case err := <-released:
		if err != nil && !errors.Is(err, locks.ErrUnreachable) && !errors.Is(err, locks.ErrLost) {
			k.broken("Release by a client that was cut off: got %v, want locks.ErrUnreachable or locks.ErrLost", err)
		}
	case <-time.After(k.patience()):
		k.broken("Release has not returned %v after the connection was back", k.patience())
	}
	k.entries(lock, 0)
	again := k.reacquire(a)
	k.renewed(again, 1)
	k.release(again)
	k.entries(lock, 0)
}

func silentService(k *kit) {
	a, b := k.locker(Config{}), k.locker(Config{})
	before := k.acquire(a, lock)
	k.release(before)
	resume := k.Pause(k.T)
	k.Cleanup(resume)
	ctx, cancel := context.WithTimeout(context.Background(), k.TTL/2)
	defer cancel()
	o := k.result(start(ctx, a.Acquire, lock), "its context ended, with the service silent")
	if o.err == nil {
		k.broken("a service that was silent granted the token %v, after %v", o.lease.Token(), before.Token())
	}
	resume()
	k.entries(lock, 0)
	k.release(k.reacquire(b))
	k.release(k.reacquire(a))
	k.entries(lock, 0)
}
