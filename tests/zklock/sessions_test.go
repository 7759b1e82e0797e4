package zklock_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestGrantsShareASession(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	bounded.Acquire(t, l, "a")
	bounded.Acquire(t, l, "b")
	if a, b := s.holder(t, "a").owner, s.holder(t, "b").owner; a != b || a == 0 {
		t.Errorf("sessions %#x and %#x, want one", a, b)
	}
}

func TestTheLeaseTimeIsThatOfTheNegotiatedSession(t *testing.T) {
	t.Parallel()
	s := shared(t)
	// The default asks for more than this server gives.
	l := s.dial(t, s.addr, &zklock.Options{Root: s.root})
	lease := bounded.Acquire(t, l, "a")
	if left := time.Until(lease.Deadline()); left > 4*time.Second || left <= 0 {
		t.Errorf("the lease has %v left, the server keeps sessions for 4s", left)
	}
	_, err := zklock.Dial(s.addr, &zklock.Options{SessionTimeout: 5 * time.Second})
	if !errors.Is(err, locks.ErrBadOption) || !strings.Contains(err.Error(), "5s") || !strings.Contains(err.Error(), "4s") {
		t.Errorf("got %v, want an error over ErrBadOption that names 5s and 4s", err)
	}
}

// More grants than one transaction looks at.
func TestManyGrantsAreRenewedAndOneDeletedIsLostAlone(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	var all []*locks.Lease
	for i := range 300 {
		all = append(all, bounded.Acquire(t, l, fmt.Sprint(i)))
	}
	start := time.Now()
	for i, lease := range all {
		bounded.Eventually(t, fmt.Sprintf("renewal of grant %d", i), func() bool { return lease.Deadline().After(start.Add(4 * time.Second)) })
	}
	s.delete(t, s.holder(t, "117").path)
	if err := bounded.Ended(t, all[117]); !errors.Is(err, locks.ErrLost) || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("the grant whose node was deleted: %v, want ErrLost and why", err)
	}
	for i, lease := range all {
		if err := lease.Context().Err(); err != nil && i != 117 {
			t.Errorf("grant %d: %v", i, context.Cause(lease.Context()))
		}
	}
}

// Their nodes would not all go into one request.
func TestGrantsOfLongNamesAreRenewed(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	var all []*locks.Lease
	for i := range 100 {
		all = append(all, bounded.Acquire(t, l, strings.Repeat("/", locks.MaxName-3)+fmt.Sprintf("%03d", i)))
	}
	start := time.Now()
	for i, lease := range all {
		bounded.Eventually(t, fmt.Sprintf("renewal of grant %d", i), func() bool {
			return lease.Deadline().After(start.Add(4*time.Second)) || lease.Context().Err() != nil
		})
		if lease.Context().Err() != nil {
			t.Fatalf("grant %d was lost", i)
		}
	}
}

func TestRenewalsWakeNoWaiter(t *testing.T) {
	t.Parallel()
	s := shared(t)
	a, b := s.dial(t, s.addr, s.long()), s.counted(t, s.long())
	lease := bounded.Acquire(t, a, "x")
	waiter := s.wait(t, b, "x", 2)
	bounded.Eventually(t, "the watch", func() bool { return slices.Contains(b.Counter.Requests(), "getData") })
	b.Counter.Reset()
	for range 3 {
		before := lease.Deadline()
		bounded.Eventually(t, "a renewal", func() bool { return lease.Deadline().After(before) })
	}
	if got := b.Counter.Requests(); len(got) != 0 {
		t.Errorf("the waiter sent %v while the holder renewed", got)
	}
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the waiter", waiter))
}

// A watch event that never comes is made up for by reading again.
func TestAMissedWatchCostsAtMostASessionTimeout(t *testing.T) {
	t.Parallel()
	s := shared(t)
	var getData, watching, dropped atomic.Int32 // the first is an xid
	deaf := newFrames(t, s.addr, func(b []byte) []byte {
		if len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == 4 {
			getData.Store(int32(binary.BigEndian.Uint32(b[4:])))
		}
		return b
	}, func(b []byte) []byte {
		switch xid := int32(binary.BigEndian.Uint32(b[4:])); {
		case xid == -1:
			dropped.Add(1)
			return nil
		case xid != 0 && xid == getData.Load():
			watching.Store(1)
		}
		return b
	})
	a, b := s.dial(t, s.addr, s.long()), s.dial(t, deaf.addr, s.options())
	lease := bounded.Acquire(t, a, "x")
	waiter := s.wait(t, b, "x", 2)
	bounded.Eventually(t, "the watch", func() bool { return watching.Load() > 0 })
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the waiter", waiter))
	if dropped.Load() == 0 {
		t.Error("no watch event was dropped")
	}
}

// The lock node is made so that its entries cannot be deleted: then only the
// end of the session removes them.
func TestASessionWithAnEntryOfUnknownFateGetsNoNewGrantAndEnds(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.options())
	live, stuck := bounded.Acquire(t, l, "live"), bounded.Acquire(t, l, "stuck")
	old := s.holder(t, "live").owner
	setACL := func(perms int32) {
		t.Helper()
		if _, err := s.direct.SetACL(s.node("stuck"), zk.WorldACL(perms), -1); err != nil {
			t.Fatal(err)
		}
	}
	setACL(zk.PermAll &^ zk.PermDelete)
	if err := stuck.Release(t.Context()); !errors.Is(err, locks.ErrBadOption) || !strings.Contains(err.Error(), "Auth") {
		t.Errorf("Release: got %v, want an error over ErrBadOption that names Options.Auth", err)
	}
	bounded.Eventually(t, "a new session", func() bool {
		bounded.Release(t, bounded.Acquire(t, l, "probe"))
		lease := bounded.Acquire(t, l, "probe")
		defer bounded.Release(t, lease)
		return s.holder(t, "probe").owner != old
	})
	if s.holder(t, "stuck").owner != old || s.holder(t, "live").owner != old || live.Context().Err() != nil {
		t.Error("the old session ended before its live grant did")
	}
	bounded.Release(t, live)
	bounded.Eventually(t, "the end of the old session", func() bool { return len(s.entries(t, "stuck")) == 0 })
	setACL(zk.PermAll)
	bounded.Release(t, bounded.Try(t, l, "stuck"))
}

// A server of the ensemble may allow less than the one that began the session.
func TestAShortenedSessionLosesItsGrantsAtOnce(t *testing.T) {
	t.Parallel()
	s := shared(t)
	var shorten atomic.Bool
	path := newFrames(t, s.addr, func(b []byte) []byte { return b }, func(b []byte) []byte {
		// The answer to a connect request begins with the protocol version 0,
		// where others have an xid.
		if shorten.Load() && binary.BigEndian.Uint32(b[4:]) == 0 {
			binary.BigEndian.PutUint32(b[8:], 1000)
		}
		return b
	})
	l := s.dial(t, path.addr, s.long())
	lease := bounded.Acquire(t, l, "x")
	path.reset()
	before := lease.Deadline()
	bounded.Eventually(t, "a renewal on a new connection", func() bool { return lease.Deadline().After(before) })
	shorten.Store(true)
	path.reset()
	if err := bounded.Ended(t, lease); !errors.Is(err, locks.ErrLost) || !strings.Contains(err.Error(), "1s") {
		t.Errorf("got %v, want ErrLost and the new timeout", err)
	}
	again := bounded.Acquire(t, l, "x")
	if left := time.Until(again.Deadline()); left > time.Second {
		t.Errorf("the new lease has %v left, the session is kept for 1s", left)
	}
	bounded.Release(t, again)
}

// Nothing piles up behind a lock that is held for long.
func TestCancelledWaitersLeaveNoGoroutine(t *testing.T) {
	s := shared(t)
	a, b := s.dial(t, s.addr, s.long()), s.dial(t, s.addr, s.long())
	bounded.Acquire(t, a, "x")
	round := func() {
		ctx, cancel := context.WithCancel(t.Context())
		waiter := make(chan error, 1)
		go func() {
			_, err := b.Acquire(ctx, "x")
			waiter <- err
		}()
		bounded.Eventually(t, "the waiter's entry", func() bool { return len(s.entries(t, "x")) == 2 })
		cancel()
		if err := bounded.Receive(t, "the waiter", waiter); !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want an error over ErrCancelled and context.Canceled", err)
		}
		bounded.Eventually(t, "its removal", func() bool { return len(s.entries(t, "x")) == 1 })
	}
	round()
	before := runtime.NumGoroutine()
	for range 30 {
		round()
	}
	bounded.Eventually(t, "the goroutines end", func() bool { return runtime.NumGoroutine() < before+10 })
}

func TestAWaiterWhoseSessionEndsQueuesAgain(t *testing.T) {
	t.Parallel()
	s := shared(t)
	a, b := s.dial(t, s.addr, s.long()), s.dial(t, s.addr, s.options())
	lease := bounded.Acquire(t, a, "x")
	waiter := s.wait(t, b, "x", 2)
	first := s.entries(t, "x")[1]
	s.closeSession(t, first)
	bounded.Eventually(t, "a new entry", func() bool { e := s.entries(t, "x"); return len(e) == 2 && e[1].path != first.path })
	if again := s.entries(t, "x")[1]; again.owner == first.owner {
		t.Errorf("the new entry is of the session %#x, which has ended", again.owner)
	}
	bounded.Release(t, lease)
	got := bounded.Granted(t, "the waiter", waiter)
	if e := s.holder(t, "x"); e.data != got.Token().Holder {
		t.Errorf("the lease has the holder %q, the entry %q", got.Token().Holder, e.data)
	}
}

// A client that has seen newer data is turned away by a server that lost it,
// and by go-zookeeper alone would be for ever.
func TestAServerThatLostItsDataIsUsedAgain(t *testing.T) {
	t.Parallel()
	srv := servers.StartZooKeeper(t, nil)
	s := newSite(t, srv.Addr())
	l := s.dial(t, s.addr, s.options())
	for range 20 {
		bounded.Release(t, bounded.Acquire(t, l, "x"))
	}
	lease := bounded.Acquire(t, l, "x")
	srv.StartEmpty(t)
	if err := bounded.Ended(t, lease); !errors.Is(err, locks.ErrLost) {
		t.Errorf("got %v, want ErrLost", err)
	}
	again := bounded.Acquire(t, l, "x")
	if again.Token().Lineage == lease.Token().Lineage {
		t.Errorf("%v and %v share a lineage", lease.Token(), again.Token())
	}
	bounded.Release(t, again)
}
