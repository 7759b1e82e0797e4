package zklock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// Pings alone do not prove that the leader still has the session, so the grant
// asks it first when nothing else has, and the lease has time left.
func TestAGrantAfterALongWaitAsksTheLeaderFirst(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.options()
	a, b := s.dial(t, s.addr, s.long()), s.counted(t, opts)
	lease := bounded.Acquire(t, a, "x")
	waiter := s.wait(t, b, "x", 2)
	b.Counter.Reset()
	pings := func() (n int) {
		for _, name := range b.Counter.Setup() {
			if name == "ping" {
				n++
			}
		}
		return n
	}
	bounded.Eventually(t, "pings for longer than a session", func() bool { return pings() >= 4 })
	bounded.Release(t, lease)
	got := bounded.Granted(t, "the waiter", waiter)
	if left := time.Until(got.Deadline()); left <= 0 || got.Context().Err() != nil {
		t.Errorf("the lease has %v left", left)
	}
	if requests := b.Counter.Requests(); !slices.Contains(requests, "multi") {
		t.Errorf("the grant sent %v, want a multi that checks the node", requests)
	}
	bounded.Release(t, got)
}

func TestAWaiterKeepsItsPlaceAcrossABrokenConnection(t *testing.T) {
	t.Parallel()
	s := shared(t)
	a, b, c := s.dial(t, s.addr, s.long()), s.counted(t, s.long()), s.dial(t, s.addr, s.long())
	lease := bounded.Acquire(t, a, "x")
	second := s.wait(t, b, "x", 2)
	third := s.wait(t, c, "x", 3)
	before := s.entries(t, "x")
	connects := func() (n int) {
		for _, name := range b.Counter.Setup() {
			if name == "connect" {
				n++
			}
		}
		return n
	}
	for range 3 {
		n := connects()
		b.Network.Reset(t)
		bounded.Eventually(t, "a new connection", func() bool { return connects() > n })
	}
	if after := s.entries(t, "x"); !slices.Equal(after, before) {
		t.Errorf("the queue was %v, is %v", before, after)
	}
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the waiter", second))
	bounded.Release(t, bounded.Granted(t, "the waiter", third))
}

// An entry that hangs on a retired session would end with it.
func TestAWaiterLeavesARetiredSession(t *testing.T) {
	t.Parallel()
	s := shared(t)
	a, b := s.dial(t, s.addr, s.long()), s.dial(t, s.addr, s.options())
	held := bounded.Acquire(t, a, "x")
	stuck := bounded.Acquire(t, b, "stuck")
	waiter := s.wait(t, b, "x", 2)
	old := s.entries(t, "x")[1].owner
	if _, err := s.direct.SetACL(s.node("stuck"), zk.WorldACL(zk.PermAll&^zk.PermDelete), -1); err != nil {
		t.Fatal(err)
	}
	_ = stuck.Release(t.Context())
	bounded.Eventually(t, "an entry of another session", func() bool {
		e := s.entries(t, "x")
		return len(e) == 2 && e[1].owner != old
	})
	bounded.Eventually(t, "the end of the old session", func() bool { return len(s.entries(t, "stuck")) == 0 })
	bounded.Release(t, held)
	bounded.Release(t, bounded.Granted(t, "the waiter", waiter))
}

func TestAReleaseWhoseReplyWasLostIsNotALoss(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.long())
	lease := bounded.Acquire(t, l, "x")
	lost := l.Counter.DropReply("delete")
	bounded.Release(t, lease)
	bounded.Receive(t, "the lost reply", lost)
	bounded.Release(t, bounded.Try(t, l, "x"))
}

// Only the end of its session removes an entry that cannot be deleted.
func TestACancelledWaitersEntryEndsWithItsSession(t *testing.T) {
	t.Parallel()
	s := shared(t)
	a, b := s.dial(t, s.addr, s.long()), s.dial(t, s.addr, s.options())
	held := bounded.Acquire(t, a, "x")
	ctx, cancel := context.WithCancel(bounded.Context(t))
	waiter := bounded.Acquiring(ctx, b, "x")
	bounded.Eventually(t, "the waiter's entry", func() bool { return len(s.entries(t, "x")) == 2 })
	setACL := func(perms int32) {
		t.Helper()
		if _, err := s.direct.SetACL(s.node("x"), zk.WorldACL(perms), -1); err != nil {
			t.Fatal(err)
		}
	}
	setACL(zk.PermAll &^ zk.PermDelete)
	cancel()
	if err := bounded.Receive(t, "the waiter", waiter).Err; !errors.Is(err, locks.ErrCancelled) {
		t.Errorf("got %v, want ErrCancelled", err)
	}
	bounded.Eventually(t, "the end of the entry", func() bool { return len(s.entries(t, "x")) == 1 })
	setACL(zk.PermAll)
	bounded.Release(t, held)
}
