package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

const (
	beforeNextGrant = "Loss by expiry is signalled before the service may grant again."
	atNextRenewal   = "Losses other than expiry (entry deleted by hand, lease or session revoked, a service that forgot) " +
		"are signalled when the service tells, at the latest at the next renewal."
)

var lossIsSignalled = []part{
	{"before-the-next-grant", beforeNextGrant, "Cut", lossBeforeTheNextGrant},
	{"entry-replaced", atNextRenewal, "ReplaceEntry", entryReplaced},
	{"entry-deleted", atNextRenewal, "DeleteEntry", entryDeleted},
	{"revoked", atNextRenewal, "Revoke", revoked},
	{"one-failed-renewal", "One failed renewal is not loss while time remains.", "Cut", oneFailedRenewal},
	{"context-is-exact", "Context().Err() looks at the clock when called; the cause says why the lease ended.", "", contextIsExact},
}

func lossBeforeTheNextGrant(k *kit) {
	a, b := k.locker(Config{}), k.locker(Config{})
	lease := k.acquire(a, lock)
	k.renewed(lease, 1)
	k.cut(a)
	ctx, stop := k.patient()
	defer stop()
	next, err := b.Acquire(ctx, lock)
	// In this order, with nothing between: the grant has happened, and only now
	// the last holder is asked.
	lateBy, signalled := time.Until(lease.Deadline()), lease.Context().Err()
	if err != nil {
		k.broken("Acquire while the holder is cut off: %v", err)
	}
	if signalled == nil {
		k.broken("%v was granted while the holder of %v still trusted its lease, for another %v", next.Token(), lease.Token(), lateBy)
	}
	k.lost(lease)
	k.release(next)
}

func entryReplaced(k *kit) {
	lease := k.acquire(k.locker(Config{}), lock)
	k.ReplaceEntry(k.T, lock)
	k.told(lease)
	k.ends(lease)
}

func entryDeleted(k *kit) {
	lease := k.acquire(k.locker(Config{}), lock)
	k.DeleteEntry(k.T, lock)
	k.told(lease)
}

// told demands that a lease whose entry is gone ends as lost, before it is
// renewed three times more: one renewal may have been under way, and one more is
// allowed. If a renewal has made the entry again, duty 7 is the broken one.
func (k *kit) told(lease *locks.Lease) {
	k.Helper()
	renewals, deadline := 0, lease.Deadline()
	k.eventually("a lease whose entry is gone has ended", func() bool {
		if now := lease.Deadline(); now.After(deadline) {
			renewals, deadline = renewals+1, now
		}
		return lease.Context().Err() != nil || renewals == 3
	})
	switch {
	case lease.Context().Err() != nil:
		k.lost(lease)
	case k.Entries == nil || k.Entries(k.T, lock) == 0:
		k.broken("the lease was renewed %d times after its entry had gone", renewals)
	}
}

func revoked(k *kit) {
	a := k.locker(Config{})
	lease := k.acquire(a, lock)
	k.Revoke(k.T, lock)
	k.told(lease)
	if lease.Context().Err() == nil {
		return
	}
	again := k.reacquire(a)
	k.renewed(again, 1)
	k.release(again)
}

func oneFailedRenewal(k *kit) {
	c := Config{TTL: max(3*k.TTL, 500*time.Millisecond)}
	if k.MaxTTL > 0 {
		c.TTL = min(c.TTL, k.MaxTTL)
	}
	a := k.locker(c)
	const rounds = 5
	for range rounds {
		lease := k.acquire(a, lock)
		k.renewed(lease, 1)
		whole := time.Until(lease.Deadline())
		heal := k.cut(a)
		// A renewal is due after a third of the time, and has its own timeout
		// of not more than another third: by then it has failed.
		k.within(k.patience(), func() bool { return time.Until(lease.Deadline()) < whole*3/10 })
		left := time.Until(lease.Deadline())
		heal()
		if left < whole/5 {
			_ = k.releaseWith(context.Background(), lease)
			continue // this process was too slow to heal in time; once more
		}
		k.renewed(lease, 2)
		k.release(lease)
		return
	}
	k.Errorf("locktest: this machine was too busy to heal a cut within a lease time of %v, %d times", c.TTL, rounds)
}

func contextIsExact(k *kit) {
	a := k.locker(k.long())
	lease := k.acquire(a, lock)
	if err := lease.Context().Err(); err != nil {
		k.broken("the context of a live lease has the error %v", err)
	}
	if left := time.Until(lease.Deadline()); left <= 0 {
		k.broken("the deadline of a live lease is %v ago", -left)
	}
	k.release(lease)
	if err := lease.Context().Err(); !errors.Is(err, context.Canceled) {
		k.broken("the context of a released lease has the error %v, want context.Canceled", err)
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrReleased) || errors.Is(cause, locks.ErrLost) {
		k.broken("the cause after a release is %v, want an error over locks.ErrReleased alone", cause)
	}
}
