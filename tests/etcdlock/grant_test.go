package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestUncontendedAcquireOnALiveLeaseIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.long())
	bounded.Release(t, bounded.Try(t, l, "first use"))
	for op, f := range map[string]func() (*locks.Lease, error){
		"Acquire":    func() (*locks.Lease, error) { return l.Acquire(bounded.Context(t), "a") },
		"TryAcquire": func() (*locks.Lease, error) { return l.TryAcquire(bounded.Context(t), "a") },
	} {
		l.Counter.Reset()
		lease, err := f()
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Counter.Requests(); !slices.Equal(got, []string{pathTxn}) || l.Counter.RoundTrips() != 1 {
			t.Errorf("%s: %v in %d round trips, want one transaction", op, got, l.Counter.RoundTrips())
		}
		l.Counter.Reset()
		bounded.Release(t, lease)
		if got := l.Counter.Requests(); !slices.Equal(got, []string{pathTxn}) {
			t.Errorf("release after %s: %v, want one transaction", op, got)
		}
	}
}

func TestAHandoverIsOneReleaseAndOneRead(t *testing.T) {
	t.Parallel()
	s := shared(t)
	a, b := s.counted(t, s.long()), s.counted(t, s.long())
	held := bounded.Try(t, a, "a")
	bounded.Release(t, bounded.Try(t, b, "first use"))
	b.Counter.Reset()
	waiter := s.wait(t, b, "a", 2)
	// The entry, the watch, and the read that shows that the watch missed nothing.
	entered := []string{pathTxn, pathWatch, pathTxn}
	bounded.Eventually(t, "the answer to the waiter's last request", func() bool {
		return len(b.Counter.Requests()) >= len(entered) && b.Counter.Unanswered() == 0
	})
	if got := b.Counter.Requests(); !slices.Equal(got, entered) {
		t.Errorf("requests of a waiter: %v, want %v", got, entered)
	}
	a.Counter.Reset()
	b.Counter.Reset()
	bounded.Release(t, held)
	bounded.Granted(t, "the waiter", waiter)
	if got := a.Counter.Requests(); !slices.Equal(got, []string{pathTxn}) {
		t.Errorf("requests of the release: %v, want one transaction", got)
	}
	// The end of a watch is a message, too, and comes when it comes.
	got := slices.DeleteFunc(b.Counter.Requests(), func(r string) bool { return r == pathWatch })
	if !slices.Equal(got, []string{pathTxn}) {
		t.Errorf("requests of the waiter that wakes: %v, want one read", got)
	}
}

func TestTokenIsTheKeysCreateRevision(t *testing.T) {
	t.Parallel()
	s := shared(t)
	lease := bounded.Try(t, s.dial(t, s.addr, s.long()), "jobs/nightly")
	tok, e := lease.Token(), s.holder(t, "jobs/nightly")
	if tok.Seq != uint64(e.rev) {
		t.Errorf("Seq is %d, the key's create revision %d", tok.Seq, e.rev)
	}
	members, err := s.direct.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("etcd:%x:%s/jobs%%2Fnightly", members.Header.ClusterId, s.prefix)
	if tok.Lineage != want {
		t.Errorf("Lineage is %q, want %q", tok.Lineage, want)
	}
	if e.holder != tok.Holder {
		t.Errorf("the key's value is %q, want the Holder %q", e.holder, tok.Holder)
	}
}

func TestTryAcquireOfAHeldLockWritesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, servers.StartEtcd(t, nil).Addr())
	a, b := s.dial(t, s.addr, s.long()), s.dial(t, s.addr, s.long())
	held := bounded.Try(t, a, "x")
	bounded.Release(t, bounded.Try(t, b, "y")) // b has its lease
	revision := func() int64 {
		resp, err := s.direct.Get(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header.Revision
	}
	before := revision()
	_, err := b.TryAcquire(bounded.Context(t), "x")
	if !errors.Is(err, locks.ErrHeld) || !strings.Contains(err.Error(), held.Token().Holder) {
		t.Errorf("got %v, want an error over ErrHeld that names the holder", err)
	}
	if after := revision(); after != before {
		t.Errorf("the revision went from %d to %d", before, after)
	}
}

func TestGrantsShareALeaseAndCountFromItsRenewal(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	a, b := bounded.Try(t, l, "a"), bounded.Try(t, l, "b")
	if ea, eb := s.holder(t, "a"), s.holder(t, "b"); ea.lease != eb.lease || ea.lease == 0 {
		t.Errorf("leases %x and %x, want one", ea.lease, eb.lease)
	}
	if !b.Deadline().Equal(a.Deadline()) {
		t.Errorf("the later grant counts to %v, the lease that both hang on to %v", b.Deadline(), a.Deadline())
	}
}

// More grants than one transaction may read: all of them are renewed.
func TestManyGrantsAreRenewedOnOneLease(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.options()
	opts.TTL = 3 * time.Second
	l := s.dial(t, s.addr, opts)
	var all []*locks.Lease
	for i := range 230 {
		all = append(all, bounded.Try(t, l, fmt.Sprint(i)))
	}
	first := all[0].Deadline()
	for i, lease := range all {
		bounded.Eventually(t, fmt.Sprintf("renewal of grant %d", i), func() bool { return lease.Deadline().After(first.Add(3 * time.Second)) })
		if err := lease.Context().Err(); err != nil {
			t.Fatalf("grant %d: %v", i, context.Cause(lease.Context()))
		}
	}
	lost := all[117]
	s.delete(t, s.holder(t, lost.Name()).key)
	if err := bounded.Ended(t, lost); !errors.Is(err, locks.ErrLost) {
		t.Errorf("the grant whose key was deleted: %v, want ErrLost", err)
	}
	if err := all[118].Context().Err(); err != nil {
		t.Errorf("its neighbour: %v", context.Cause(all[118].Context()))
	}
}

func TestALeaseTimeBelowTheServersMinimumIsRefused(t *testing.T) {
	t.Parallel()
	srv := servers.StartEtcd(t, &servers.EtcdOptions{Flags: []string{"--heartbeat-interval", "100", "--election-timeout", "1000"}})
	s := newSite(t, srv.Addr())
	_, err := s.dial(t, s.addr, s.options()).TryAcquire(bounded.Context(t), "a")
	if !errors.Is(err, locks.ErrBadOption) || !strings.Contains(err.Error(), "1s") || !strings.Contains(err.Error(), "2s") {
		t.Errorf("got %v, want an error over ErrBadOption that names 1s and 2s", err)
	}
	bounded.Eventually(t, "the refused lease is revoked", func() bool {
		all, err := s.direct.Leases(t.Context())
		return err == nil && len(all.Leases) == 0
	})
	opts := s.options()
	opts.TTL = 2 * time.Second
	bounded.Try(t, s.dial(t, s.addr, opts), "a")
}

func TestCloseGivesTheLeaseBackAndLeavesTheClientOpen(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l, err := etcdlock.New(s.direct, s.long())
	if err != nil {
		t.Fatal(err)
	}
	lease := bounded.Try(t, l, "a")
	id := s.holder(t, "a").lease
	bounded.Close(t, l)
	if err := bounded.Ended(t, lease); !errors.Is(err, locks.ErrReleased) {
		t.Errorf("the lease ended with %v, want ErrReleased", err)
	}
	if n := len(s.entries(t, "a")); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	if ttl, err := s.direct.TimeToLive(t.Context(), id); err != nil || ttl.TTL != -1 {
		t.Errorf("the etcd lease: %+v, %v, want it gone", ttl, err)
	}
	if _, err := l.Acquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrClosed) {
		t.Errorf("Acquire after Close: %v, want ErrClosed", err)
	}
}

func TestARevokedLeaseIsLostBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.options()
	opts.TTL = 6 * time.Second
	l := s.dial(t, s.addr, opts)
	a, b := bounded.Try(t, l, "a"), bounded.Try(t, l, "b")
	s.revoke(t, s.holder(t, "a"))
	for _, lease := range []*locks.Lease{a, b} {
		cause, left := bounded.Ended(t, lease), time.Until(lease.Deadline())
		if !errors.Is(cause, locks.ErrLost) || left <= 0 {
			t.Errorf("%q ended with %v, %v before its deadline, want ErrLost from the renewal", lease.Name(), cause, left)
		}
	}
	bounded.Release(t, bounded.Try(t, l, "a"))
}
