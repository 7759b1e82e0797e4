package zklock_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// The reply to the create is lost, and what is found under the attempt's id is
// of another session by then: nobody here keeps it alive.
func TestAnEntryOfAnotherSessionIsNotOnesOwn(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.long())
	bounded.Release(t, bounded.Acquire(t, l, "x")) // makes the lock node
	held, release := l.Counter.HoldReply("create")
	waiter := bounded.Acquiring(bounded.Context(t), l, "x")
	bounded.Receive(t, "the create", held)
	entry := s.holder(t, "x").path
	s.delete(t, entry)
	s.create(t, entry, zk.FlagEphemeral)
	l.Network.Reset(t)
	release()

	bounded.Eventually(t, "an entry behind the other session's", func() bool {
		all := s.entries(t, "x")
		return len(all) == 2 && all[0].path == entry && all[1].owner != all[0].owner
	})
	select {
	case r := <-waiter:
		t.Fatalf("Acquire returned %v, %v while the other session has the lock", r.Lease, r.Err)
	default:
	}
	s.delete(t, entry)
	lease := bounded.Granted(t, "the waiter", waiter)
	if e := s.holder(t, "x"); e.data != lease.Token().Holder {
		t.Errorf("the lease has the holder %q, the entry %q", lease.Token().Holder, e.data)
	}
	bounded.Release(t, lease)
}

// The client library's channel of events has room for six, and drops the rest.
func TestALossAfterManyReconnectionsIsTold(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.long())
	lease := bounded.Acquire(t, l, "x")
	for range 5 { // each is a handful of events
		before := lease.Deadline()
		l.Network.Reset(t)
		bounded.Eventually(t, "a renewal on a new connection", func() bool {
			return lease.Deadline().After(before) || lease.Context().Err() != nil
		})
	}
	if lease.Context().Err() != nil {
		t.Fatalf("a new connection is loss: %v", bounded.Ended(t, lease))
	}
	s.closeSession(t, s.holder(t, "x"))
	if err := bounded.Ended(t, lease); !errors.Is(err, locks.ErrLost) {
		t.Errorf("the lease ended with %v, want ErrLost", err)
	}
	bounded.Release(t, bounded.Acquire(t, l, "x"))
}

// What a server would remove by itself when it is empty begins to number again. A
// container does not show in a node's stat, but in the request that made it.
func TestNothingThatNumbersEndsByItself(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.long())
	bounded.Release(t, bounded.Acquire(t, l, "x"))
	made := l.Counter.Requests()
	for _, request := range made {
		if strings.HasPrefix(request, "create") && request != "create" {
			t.Errorf("the nodes were made by %v, want nothing but create", made)
			break
		}
	}
	for _, node := range []string{s.root, s.node("x")} {
		if owner := s.stat(t, node).EphemeralOwner; owner != 0 {
			t.Errorf("%s has the owner %#x, want a node without", node, owner)
		}
	}
}

// An error in the middle of an Acquire: the server refuses the first read after
// the create, then the second, and so on until Acquire makes fewer.
func TestARefusalAtAnyRequestLeavesNothing(t *testing.T) {
	t.Parallel()
	s := shared(t)
	var refuse, xid, met atomic.Int32 // reads up to the one that is refused; its xid
	path := newFrames(t, s.addr, func(b []byte) []byte {
		if len(b) < 12 {
			return b
		}
		switch op := int32(binary.BigEndian.Uint32(b[8:])); op {
		case 3, 4, 12: // exists, getData, getChildren2
			if refuse.Add(-1) == 0 {
				xid.Store(int32(binary.BigEndian.Uint32(b[4:])))
			}
		}
		return b
	}, func(b []byte) []byte {
		if len(b) >= 20 && xid.Load() != 0 && int32(binary.BigEndian.Uint32(b[4:])) == xid.Load() {
			const noAuth = -102
			binary.BigEndian.PutUint32(b[16:], uint32(1<<32+noAuth))
			xid.Store(0)
			met.Add(1)
		}
		return b
	})
	holder, l := s.dial(t, s.addr, s.long()), s.dial(t, path.addr, s.long())
	bounded.Release(t, bounded.Acquire(t, l, "x"))
	for n := int32(1); n < 10; n++ {
		held := bounded.Acquire(t, holder, "x")
		before := met.Load()
		refuse.Store(n)
		waiter := bounded.Acquiring(bounded.Context(t), l, "x")
		bounded.Eventually(t, "the refusal, or two reads: where it stands, and a watch", func() bool {
			return met.Load() > before || refuse.Load() <= n-2
		})
		bounded.Release(t, held)
		r := bounded.Receive(t, "Acquire", waiter)
		if met.Load() == before {
			if r.Err != nil || n < 4 {
				t.Fatalf("with read %d to be refused Acquire returned %v after fewer", n, r.Err)
			}
			bounded.Release(t, r.Lease)
			return
		}
		if !errors.Is(r.Err, locks.ErrBadOption) {
			t.Errorf("read %d was refused: Acquire returned %v, want ErrBadOption", n, r.Err)
		}
		bounded.Eventually(t, "nothing is left", func() bool { return len(s.entries(t, "x")) == 0 })
	}
	t.Error("Acquire never came to its end without a refusal")
}
