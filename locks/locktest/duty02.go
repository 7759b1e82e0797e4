package locktest

import (
	"errors"

	"github.com/fencedkv/fencedkv/locks"
)

const idempotent = "Every attempt has its own id and is idempotent by it: " +
	"a command that is repeated after a lost reply returns the same token."

var attemptsAreIdempotent = []part{
	{"lost-reply", idempotent, "LoseReply Entries", lostReply},
	{"try-after-lost-reply", idempotent, "LoseReply Entries", tryAfterLostReply},
}

func lostReply(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	k.free(a, lock) // connects, so that the reply lost is that of the take
	k.LoseReply(k.T, a)
	lease := k.acquire(a, lock)
	if n := k.Entries(k.T, lock); n != 1 {
		k.broken("one grant whose reply was lost left %d entries, want 1", n)
	}
	k.held(b, lock)
	k.release(lease)
	k.entries(lock, 0)
	k.free(b, lock)
}

func tryAfterLostReply(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	k.free(a, lock)
	k.LoseReply(k.T, a)
	lease, err := k.try(a, lock)
	switch {
	case err == nil:
		k.held(b, lock)
		k.release(lease)
	case errors.Is(err, locks.ErrHeld):
		k.broken("TryAcquire of a free lock whose reply was lost: %v; it met its own entry", err)
	case !errors.Is(err, locks.ErrUnreachable):
		k.broken("TryAcquire of a free lock whose reply was lost: got %v, want a lease or locks.ErrUnreachable", err)
	}
	k.entries(lock, 0)
	k.free(b, lock)
}
