package locktest

import (
	"context"
	"errors"

	"github.com/fencedkv/fencedkv/locks"
)

const compares = "Release and cleanup compare before they delete."

var releaseCompares = []part{
	{"replaced-by-another", compares, "ReplaceEntry", replacedByAnother},
	{"expired-and-succeeded", compares, "Expire|Cut", expiredAndSucceeded},
	{"cancelled-context", "Release and cleanup are detached from the caller's cancelled context.", "", releaseWithCancelledContext},
	{"own-timeout", "Release and cleanup have their own timeout.", "Cut", releaseHasATimeout},
}

func replacedByAnother(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	lease := k.acquire(a, lock)
	k.ReplaceEntry(k.T, lock)
	if err := k.releaseWith(context.Background(), lease); !errors.Is(err, locks.ErrLost) {
		k.broken("Release of a lock that somebody else has by now: got %v, want an error over locks.ErrLost", err)
	}
	k.held(b, lock)
	k.entries(lock, 1)
}

func expiredAndSucceeded(k *kit) {
	a, b, c := k.locker(Config{}), k.locker(Config{}), k.locker(Config{})
	lease := k.acquire(a, lock)
	heal := k.runOut(a, lock)
	successor := k.acquire(b, lock)
	heal()
	if err := k.releaseWith(context.Background(), lease); !errors.Is(err, locks.ErrLost) {
		k.broken("Release of a lease whose time is over: got %v, want an error over locks.ErrLost", err)
	}
	if err := k.closed(a); err != nil {
		k.Logf("closing the client that lost: %v", err)
	}
	k.held(c, lock)
	k.renewed(successor, 2)
	k.release(successor)
}

func releaseWithCancelledContext(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	lease := k.acquire(a, lock)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := k.releaseWith(ctx, lease); err != nil {
		k.broken("Release with a cancelled context: got %v, want nil and a free lock", err)
	}
	k.entries(lock, 0)
	k.free(b, lock)
}

func releaseHasATimeout(k *kit) {
	a := k.locker(Config{})
	lease := k.acquire(a, lock)
	k.cut(a)
	err := k.releaseWith(context.Background(), lease)
	if !errors.Is(err, locks.ErrUnreachable) && !errors.Is(err, locks.ErrLost) {
		k.broken("Release by a client that is cut off: got %v, want locks.ErrUnreachable or locks.ErrLost", err)
	}
}
