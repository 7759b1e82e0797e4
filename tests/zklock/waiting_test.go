package zklock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Pings alone do not prove that the leader still has the session, so the grant
// asks it first when nothing else has, and the lease has time left.
func TestAGrantAfterALongWaitAsksTheLeaderFirst(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.options()
	a, b := s.dial(t, s.addr, s.long()), s.counted(t, opts)
	lease := acquire(t, a, "x")
	waiter := s.wait(t, b, "x", 2)
	b.counter.Reset()
	pings := func() (n int) {
		for _, name := range b.counter.Setup() {
			if name == "ping" {
				n++
			}
		}
		return n
	}
	eventually(t, "pings for longer than a session", func() bool { return pings() >= 4 })
	release(t, lease)
	got := granted(t, waiter)
	if left := time.Until(got.Deadline()); left <= 0 || got.Context().Err() != nil {
		t.Errorf("the lease has %v left", left)
	}
	if requests := b.counter.Requests(); !slices.Contains(requests, "multi") {
		t.Errorf("the grant sent %v, want a multi that checks the node", requests)
	}
	release(t, got)
}

func TestAWaiterKeepsItsPlaceAcrossABrokenConnection(t *testing.T) {
	t.Parallel()
	s := shared(t)
	a, b, c := s.dial(t, s.addr, s.long()), s.counted(t, s.long()), s.dial(t, s.addr, s.long())
	lease := acquire(t, a, "x")
	second := s.wait(t, b, "x", 2)
	third := s.wait(t, c, "x", 3)
	before := s.entries(t, "x")
	connects := func() (n int) {
		for _, name := range b.counter.Setup() {
			if name == "connect" {
				n++
			}
		}
		return n
	}
	for range 3 {
		n := connects()
		b.network.Reset(t)
		eventually(t, "a new connection", func() bool { return connects() > n })
	}
	if after := s.entries(t, "x"); !slices.Equal(after, before) {
		t.Errorf("the queue was %v, is %v", before, after)
	}
	release(t, lease)
	release(t, granted(t, second))
	release(t, granted(t, third))
}

// An entry that hangs on a retired session would end with it.
func TestAWaiterLeavesARetiredSession(t *testing.T) {
	t.Parallel()
	s := shared(t)
	a, b := s.dial(t, s.addr, s.long()), s.dial(t, s.addr, s.options())
	held := acquire(t, a, "x")
	stuck := acquire(t, b, "stuck")
	waiter := s.wait(t, b, "x", 2)
	old := s.entries(t, "x")[1].owner
	if _, err := s.direct.SetACL(s.node("stuck"), zk.WorldACL(zk.PermAll&^zk.PermDelete), -1); err != nil {
		t.Fatal(err)
	}
	_ = stuck.Release(t.Context())
	eventually(t, "an entry of another session", func() bool {
		e := s.entries(t, "x")
		return len(e) == 2 && e[1].owner != old
	})
	eventually(t, "the end of the old session", func() bool { return len(s.entries(t, "stuck")) == 0 })
	release(t, held)
	release(t, granted(t, waiter))
}
