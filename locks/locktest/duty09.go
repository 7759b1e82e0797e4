package locktest

import (
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

var noStampede = []part{
	{"one-wakes", "Waiters do not stampede: a release wakes one.", "Requests", oneWakes},
}

const (
	waiting = 32 // clients that wait

	// A handover may cost this many requests: the release, the check of the
	// waiter that wakes, its retries and renewals. If every waiter woke, it
	// would cost at least one for each that is left, 16 on average.
	perHandover = 8

	// A waiter may look by itself this often in a lease time, in case it missed
	// the message that wakes it.
	polls = 6
)

// oneWakes passes a lock through many waiters and counts what it costs.
func oneWakes(k *kit) {
	ctx, stop := k.patient()
	defer stop()
	clients := make([]locks.Locker, 4)
	for i := range clients {
		clients[i] = k.locker(k.long())
	}
	lease := k.acquire(k.locker(k.long()), lock)
	before := k.Requests()
	grants := make(chan outcome, waiting)
	for i := range waiting {
		go func() {
			lease, err := clients[i%len(clients)].Acquire(ctx, lock)
			grants <- outcome{lease, err}
		}()
	}
	k.queued(lock, waiting+1)
	k.eventually("every waiter has sent a request", func() bool { return k.Requests()-before >= waiting })

	before, started := k.Requests(), time.Now()
	for range waiting {
		k.release(lease)
		o := k.result(grants, "a release")
		if o.err != nil {
			k.broken("a waiter got %v", o.err)
		}
		lease = o.lease
	}
	sent, took := k.Requests()-before, time.Since(started)
	k.release(lease)

	allowed := waiting*perHandover + int(polls*waiting*took/k.TTL)
	if sent > allowed {
		k.broken("%d handovers with %d waiters cost %d requests in %v, want at most %d: "+
			"the cost of one must not depend on how many wait", waiting, waiting, sent, took, allowed)
	}
}
