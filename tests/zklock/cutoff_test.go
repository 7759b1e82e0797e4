package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// A follower goes on answering pings for a while after its leader has ceased to
// hear from it; the leader lets the session expire. Whoever counts from the
// pings trusts a lock that somebody else has by then.
func TestALeaseEndsInTimeWhenTheServerIsCutOffFromItsLeader(t *testing.T) {
	// Each member reaches the others through proxies of its own, so that one
	// follower can be cut off from its leader, and from nobody else.
	links := make(map[[2]int]*proxy.Proxy) // from, to
	e := servers.StartEnsemble(t, &servers.EnsembleOptions{Route: func(from, to int, addr string) string {
		p := proxy.New(t, addr)
		links[[2]int{from, to}] = p
		return p.Addr()
	}})
	s := newSite(t, e.Members[0].Addr())
	for _, tt := range []struct {
		timeout time.Duration
		renewed int // before the cut; 0 is a first grant after a long idle time
	}{
		{time.Second, 3},
		{time.Second, 0},
		{400 * time.Millisecond, 3}, // the shortest, two ticks
		{400 * time.Millisecond, 0},
		{2 * time.Second, 1},
	} {
		leader := e.Leader(t) // waits until all are back
		follower := (leader + 1) % len(e.Members)
		link := links[[2]int{follower, leader}]
		opts := &zklock.Options{Root: s.root, SessionTimeout: tt.timeout, RequestTimeout: bounded.Patience}
		holder := dial(t, e.Members[follower].Addr(), opts)
		observer := dial(t, e.Members[leader].Addr(), s.long())
		if tt.renewed == 0 {
			idle := time.NewTimer(3 * tt.timeout)
			<-idle.C
		}
		lease := renewed(t, holder, tt.renewed)
		link.BlackHole(t, proxy.Both)
		ended := make(chan time.Time, 1)
		go func() {
			bounded.Ended(t, lease)
			ended <- time.Now()
		}()
		ctx, cancel := context.WithTimeout(context.Background(), bounded.Patience)
		next, err := observer.Acquire(ctx, "x")
		cancel()
		granted, signalled := time.Now(), lease.Context().Err()
		if err != nil {
			t.Fatalf("the observer: %v", err)
		}
		if signalled == nil {
			t.Errorf("%+v: the lock was granted again while the holder trusted its lease until %v later", tt, time.Until(lease.Deadline()))
		}
		t.Logf("%+v: the lease ended %v before the lock was granted again", tt, granted.Sub(<-ended))
		if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrLost) {
			t.Errorf("%+v: the cause is %v, want ErrLost", tt, cause)
		}
		if next.Token().Seq <= lease.Token().Seq || next.Token().Lineage != lease.Token().Lineage {
			t.Errorf("%+v: token %v after %v", tt, next.Token(), lease.Token())
		}
		bounded.Release(t, next)
		link.Heal(t)
		bounded.Close(t, observer)
		bounded.Close(t, holder)
	}
}

// renewed returns a lease that was renewed n times. On a busy machine a short
// session may be lost before.
func renewed(t *testing.T, l *zklock.Locker, n int) *locks.Lease {
	t.Helper()
	for {
		lease := bounded.Acquire(t, l, "x")
		for range n {
			before := lease.Deadline()
			bounded.Eventually(t, "a renewal", func() bool { return lease.Deadline().After(before) || lease.Context().Err() != nil })
		}
		if lease.Context().Err() == nil {
			return lease
		}
		t.Logf("lost before the cut: %v", context.Cause(lease.Context()))
	}
}
