package locktest

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

const rises = "Tokens rise with every grant: after release, after expiry, across clients, across a restart of the service."

var tokensRise = []part{
	{"after-release", rises, "", riseAfterRelease},
	{"after-expiry", rises, "Expire|Cut", riseAfterExpiry},
	{"across-clients", rises, "", riseAcrossClients},
	{"from-waiter-to-waiter", rises, "", riseAmongWaiters},
	{"across-restart" + ownServer, rises, "Restart", riseAcrossRestart},
	{"one-lineage", "The lineage names one unbroken numbering of one lock; it includes the full name of the lock.", "", oneLineage},
	{"holder-is-unique", "The holder of a token is unique per grant.", "", holderIsUnique},
	{"token-is-constant", "The token belongs to the lease and never changes.", "", tokenIsConstant},
}

// rising demands that a token is valid and above the last one of its lock.
func (k *kit) rising(last, next fence.Token) {
	k.Helper()
	if err := next.Validate(); err != nil {
		k.broken("a grant has the token %v, which no guard admits: %v", next, err)
	}
	if last.IsZero() {
		return
	}
	if next.Seq <= last.Seq || next.Lineage != last.Lineage {
		k.broken("the grant after %v got %v, want a higher number of the same lineage", last, next)
	}
}

func riseAfterRelease(k *kit) {
	l := k.locker(k.long())
	var last fence.Token
	for range 5 {
		lease := k.acquire(l, lock)
		k.rising(last, lease.Token())
		last = lease.Token()
		k.release(lease)
	}
}

func riseAfterExpiry(k *kit) {
	a, b, c := k.locker(Config{}), k.locker(Config{}), k.locker(Config{})
	first := k.acquire(a, lock)
	heal := k.runOut(a, lock)
	second := k.acquire(b, lock)
	k.rising(first.Token(), second.Token())
	heal()
	k.release(second)
	third := k.acquire(c, lock)
	k.rising(second.Token(), third.Token())
	k.release(third)
}

func riseAcrossClients(k *kit) {
	var last fence.Token
	clients := []locks.Locker{k.locker(k.long()), k.locker(k.long()), k.locker(k.long())}
	for i := range 6 {
		lease := k.acquire(clients[i%3], lock)
		k.rising(last, lease.Token())
		last = lease.Token()
		k.release(lease)
	}
}

func riseAmongWaiters(k *kit) {
	ctx, stop := k.patient()
	defer stop()
	const waiters = 5
	lease := k.acquire(k.locker(k.long()), lock)
	grants := make(chan outcome, waiters)
	for range waiters {
		l := k.locker(k.long())
		go func() {
			lease, err := l.Acquire(ctx, lock)
			grants <- outcome{lease, err}
		}()
	}
	k.queued(lock, waiters+1)
	for range waiters {
		last := lease.Token()
		k.release(lease)
		o := k.result(grants, "the release of the lock that it waited for")
		if o.err != nil {
			k.broken("a waiter got %v", o.err)
		}
		lease = o.lease
		k.rising(last, lease.Token())
	}
	k.release(lease)
}

func riseAcrossRestart(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	var last fence.Token
	for range 3 {
		lease := k.acquire(a, lock)
		last = lease.Token()
		k.release(lease)
	}
	k.Restart(k.T)
	for _, l := range []locks.Locker{b, a, k.locker(k.long())} {
		lease := k.reacquire(l)
		k.rising(last, lease.Token())
		last = lease.Token()
		_ = k.releaseWith(context.Background(), lease) // the first request after a restart may meet a dead connection
	}
}

// reacquire is acquire for a client whose connection broke: errors over
// ErrUnreachable are allowed for a while.
func (k *kit) reacquire(l locks.Locker) *locks.Lease {
	k.Helper()
	ctx, stop := k.patient()
	defer stop()
	var lease *locks.Lease
	var err error
	if !k.within(k.patience(), func() bool { lease, err = l.Acquire(ctx, lock); return err == nil }) {
		k.broken("Acquire of a free lock after the connection came back: %v", err)
	}
	return lease
}

func oneLineage(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	long := strings.Repeat("n", locks.MaxName-1)
	names := []string{lock, "other", "a/b", "a%2Fb", "a_b", long + "1", long + "2"}
	nameOf := make(map[string]string)
	for _, name := range names {
		lease := k.acquire(a, name)
		lineage := lease.Token().Lineage
		if lineage == "" {
			k.broken("the token %v has no lineage", lease.Token())
		}
		if other, ok := nameOf[lineage]; ok {
			k.broken("the locks %.40q and %.40q have one lineage, %q", other, name, lineage)
		}
		nameOf[lineage] = name
		k.release(lease)
	}
	for _, name := range names {
		lease := k.acquire(b, name)
		if lineage := lease.Token().Lineage; nameOf[lineage] != name {
			k.broken("another client's token of the lock %.40q has another lineage, %q", name, lineage)
		}
		k.release(lease)
	}
}

func holderIsUnique(k *kit) {
	seen := map[string]bool{"": true}
	a, b := k.locker(k.long()), k.locker(k.long())
	for i, l := range []locks.Locker{a, a, b, b} {
		for _, name := range []string{lock, "other"} {
			lease := k.acquire(l, name)
			if holder := lease.Token().Holder; seen[holder] {
				k.broken("grant %d has the holder %q, which is empty or was another grant's", i, holder)
			} else {
				seen[holder] = true
			}
			k.release(lease)
		}
	}
}

func tokenIsConstant(k *kit) {
	type key struct{}
	value := rand.Int()
	ctx, stop := k.patient()
	defer stop()
	lease, err := k.locker(Config{}).Acquire(context.WithValue(ctx, key{}, value), lock)
	if err != nil {
		k.broken("Acquire of a free lock: %v", err)
	}
	first := lease.Token()
	k.renewed(lease, 2)
	if got := lease.Token(); got != first {
		k.broken("the token was %v and is %v after two renewals", first, got)
	}
	carried, ok := fence.FromContext(lease.Context())
	if !ok || carried != first {
		k.broken("the lease's context carries the token %v, want %v", carried, first)
	}
	if got := lease.Context().Value(key{}); got != value {
		k.broken("the lease's context has lost the values of Acquire's: got %v, want %v", got, value)
	}
	if left := time.Until(lease.Deadline()); left > k.TTL {
		k.broken("the deadline is %v away, want at most the lease time of %v", left, k.TTL)
	}
	k.release(lease)
	if got := lease.Token(); got != first {
		k.broken("the token was %v and is %v after the release", first, got)
	}
}
