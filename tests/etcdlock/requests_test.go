package etcdlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// commits returns how far the log of the cluster has come: every entry is a
// commit of a quorum.
func (s *site) commits(t testing.TB) uint64 {
	t.Helper()
	status, err := s.direct.Status(t.Context(), s.addr)
	if err != nil {
		t.Fatal(err)
	}
	return status.RaftIndex
}

// cost is what one step asks of etcd.
type cost struct {
	requests []string
	trips    int
	commits  uint64
}

func (s *site) cost(t testing.TB, counter *proxy.Counter, step func()) cost {
	t.Helper()
	counter.Reset()
	before := s.commits(t)
	step()
	return cost{counter.Requests(), counter.RoundTrips(), s.commits(t) - before}
}

// A lock costs what the one of etcd's own client library costs on a live
// session, although ours brings a token: one request and one commit to take it,
// and as much to give it back.
func TestALockCostsOneRequestAndOneCommitEachWay(t *testing.T) {
	t.Parallel()
	s := newSite(t, servers.StartEtcd(t, nil).Addr())
	l := s.counted(t, s.long())
	bounded.Release(t, bounded.Acquire(t, l, "first use"))

	counter := proxy.CountEtcd(t, s.addr)
	session, err := concurrency.NewSession(newClient(t, counter.Addr()), concurrency.WithTTL(60))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	mutex := concurrency.NewMutex(session, s.prefix+"-mutex/a")

	for range 2 {
		var lease *locks.Lease
		took := s.cost(t, l.Counter, func() { lease = bounded.Acquire(t, l, "a") })
		gave := s.cost(t, l.Counter, func() { bounded.Release(t, lease) })
		for step, got := range map[string]cost{"Acquire": took, "Release": gave} {
			if !slices.Equal(got.requests, []string{pathTxn}) || got.trips != 1 || got.commits != 1 {
				t.Errorf("%s: %+v, want one transaction and one commit", step, got)
			}
		}
		theirs := s.cost(t, counter, func() {
			if err := mutex.Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := mutex.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
		// The session's first renewal may come between.
		if n := len(theirs.requests); n < 2 || theirs.commits != took.commits+gave.commits {
			t.Errorf("concurrency.Mutex: %+v, want at least two requests and as many commits as ours", theirs)
		}
	}
	held := bounded.Acquire(t, l, "held")
	refused := s.cost(t, l.Counter, func() {
		if _, err := l.TryAcquire(bounded.Context(t), "held"); err == nil {
			t.Error("TryAcquire of a held lock: got a lease")
		}
	})
	// The log has the transaction, because it would write; the data have not.
	if !slices.Equal(refused.requests, []string{pathTxn}) || refused.commits != 1 {
		t.Errorf("TryAcquire of a held lock: %+v, want one transaction", refused)
	}
	bounded.Release(t, held)
}

// etcd finds the end of a queue by looking at every key that has been in it
// since the last compaction, so names are used again; never two at a time.
func TestKeysAreUsedAgain(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	names, revs := map[string]bool{}, map[int64]bool{}
	note := func() {
		for _, e := range s.entries(t, "a") {
			names[e.key], revs[e.rev] = true, true
		}
	}
	const grants, waiters = 10, 3
	for range grants {
		held := bounded.Acquire(t, l, "a")
		var waiting []<-chan bounded.Result
		for i := range waiters {
			waiting = append(waiting, s.wait(t, l, "a", 2+i))
		}
		if n := len(s.entries(t, "a")); n != 1+waiters {
			t.Fatalf("%d keys, want %d", n, 1+waiters)
		}
		note()
		bounded.Release(t, held)
		for _, w := range waiting {
			bounded.Release(t, bounded.Granted(t, "a waiter", w))
		}
	}
	if len(names) != 1+waiters || len(revs) != grants*(1+waiters) {
		t.Errorf("%d keys and %d create revisions, want %d and %d", len(names), len(revs), 1+waiters, grants*(1+waiters))
	}
}

// Also of a waiter that gives up while an older entry of its lease stays.
func TestTheKeyOfAWaiterIsUsedAgainWhileItsLockIsHeld(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	held := bounded.Acquire(t, l, "a")
	names := map[string]bool{}
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		waiter := bounded.Acquiring(ctx, l, "a")
		bounded.Eventually(t, "the waiter's entry", func() bool { return len(s.entries(t, "a")) == 2 })
		names[s.entries(t, "a")[1].key] = true
		cancel()
		if r := bounded.Receive(t, "the waiter", waiter); r.Err == nil {
			t.Error("a cancelled waiter got the lock")
		}
		bounded.Eventually(t, "its entry is gone", func() bool { return len(s.entries(t, "a")) == 1 })
	}
	// The client may hear of a removal only when the next one has its key.
	if len(names) > 3 {
		t.Errorf("ten waiters, one after the other, had %d keys, want a few", len(names))
	}
	bounded.Release(t, held)
}

// A copy of the removal that arrives late must not hit a later entry, which may
// have the same key.
func TestTheRemovalOfAWaiterComparesBeforeItDeletes(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.long())
	held := bounded.Acquire(t, l, "a")
	ctx, cancel := context.WithCancel(t.Context())
	waiter := bounded.Acquiring(ctx, l, "a")
	bounded.Eventually(t, "it waits", l.watches)
	cancel()
	if r := bounded.Receive(t, "the waiter", waiter); r.Err == nil {
		t.Error("a cancelled waiter got the lock")
	}
	bounded.Eventually(t, "its entry is gone", func() bool { return len(s.entries(t, "a")) == 1 })
	if got := l.Counter.Requests(); slices.Contains(got, "/etcdserverpb.KV/DeleteRange") {
		t.Errorf("requests %v, want no deletion without a comparison", got)
	}
	bounded.Release(t, held)
}

// Somebody else's key of that name is another entry of the queue.
func TestAForeignKeyOfTheSameNameIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	lease := bounded.Acquire(t, l, "a")
	name := s.holder(t, "a").key
	bounded.Release(t, lease)
	if _, err := s.direct.Put(t.Context(), name, "by hand"); err != nil {
		t.Fatal(err)
	}
	waiter := s.wait(t, l, "a", 2)
	if all := s.entries(t, "a"); all[0].key != name || all[0].holder != "by hand" {
		t.Errorf("the queue is %+v, want the key put by hand first", all)
	}
	s.delete(t, name)
	bounded.Release(t, bounded.Granted(t, "the waiter", waiter))
}

// Every waiter has a place, and a release costs the same however many there are.
func TestAHandoverCostsTheSameWith500Waiters(t *testing.T) {
	t.Parallel()
	s := newSite(t, servers.StartEtcd(t, nil).Addr())
	counter := proxy.CountEtcd(t, s.addr)
	const lockers, waiters, handovers = 10, 500, 20
	held := bounded.Acquire(t, s.dial(t, counter.Addr(), s.long()), "a")
	ctx, cancel := context.WithCancel(t.Context())
	granted := make(chan *locks.Lease, 1)
	for range lockers {
		l := s.dial(t, counter.Addr(), s.long())
		for range waiters / lockers {
			go func() {
				if lease, err := l.Acquire(ctx, "a"); err == nil {
					granted <- lease
				}
			}()
		}
	}
	// The holder's entry, and for each waiter its entry and the read that shows
	// that its watch has missed nothing.
	txns := func() (n int) {
		for _, r := range counter.Requests() {
			if r == pathTxn {
				n++
			}
		}
		return n
	}
	bounded.Eventually(t, "all wait", func() bool { return txns() == 1+2*waiters && counter.Unanswered() == 0 })

	counter.Reset()
	before := s.commits(t)
	for range handovers {
		bounded.Release(t, held)
		held = bounded.Receive(t, "the next holder", granted)
	}
	commits := s.commits(t) - before
	requests := counter.Requests()
	ends := len(slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return r != pathWatch }))
	t.Logf("a handover with %d waiters: %.2f requests, of them %.2f ends of a watch, and %.2f commits",
		waiters, float64(len(requests))/handovers, float64(ends)/handovers, float64(commits)/handovers)
	// The release, the read of the one that wakes, and the end of its watch,
	// which comes when it comes.
	if got := len(requests) - ends; got != 2*handovers || ends > handovers || commits != handovers {
		t.Errorf("%d handovers: %d requests, %d ends of a watch and %d commits, want %d, at most %d and %d",
			handovers, got, ends, commits, 2*handovers, handovers, handovers)
	}
	cancel()
	bounded.Release(t, held)
	bounded.Eventually(t, "the waiters are gone", func() bool {
		resp, err := s.direct.Get(t.Context(), s.queue("a"), clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && resp.Count == 0
	})
}

func TestManyLocksShareOneConnectionAndOneLease(t *testing.T) {
	t.Parallel()
	s := newSite(t, servers.StartEtcd(t, nil).Addr())
	l := s.counted(t, s.long())
	var held []*locks.Lease
	var waiting []<-chan bounded.Result
	for i := range 100 {
		name := fmt.Sprint(i)
		held = append(held, bounded.Acquire(t, l, name))
		waiting = append(waiting, s.wait(t, l, name, 2))
	}
	all, err := s.direct.Leases(t.Context())
	if err != nil || len(all.Leases) != 1 {
		t.Errorf("%d leases, %v, want one", len(all.Leases), err)
	}
	if n := l.Counter.Connections(); n != 1 {
		t.Errorf("%d connections, want one", n)
	}
	for i := range held {
		bounded.Release(t, held[i])
		bounded.Release(t, bounded.Granted(t, "a waiter", waiting[i]))
	}
}
