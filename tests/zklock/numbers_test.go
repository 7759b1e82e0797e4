package zklock_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

func TestUncontendedAcquireIsTwoRoundTrips(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		useZxid bool
		create  string
	}{{false, "create"}, {true, "multi"}} {
		s := shared(t)
		opts := s.long()
		opts.UseZxid = tt.useZxid
		l := s.counted(t, opts)
		bounded.Release(t, bounded.Try(t, l, "a")) // makes the lock node
		want := func(what string, requests ...string) {
			t.Helper()
			if got := l.Counter.Requests(); !slices.Equal(got, requests) || l.Counter.RoundTrips() != len(requests) {
				t.Errorf("%s: %v in %d round trips, want %v", what, got, l.Counter.RoundTrips(), requests)
			}
			l.Counter.Reset()
		}
		l.Counter.Reset()
		lease := bounded.Acquire(t, l, "a")
		want("Acquire", tt.create, "getChildren2")
		bounded.Release(t, lease)
		want("Release", "delete")
		lease = bounded.Try(t, l, "a")
		want("TryAcquire", "getChildren2", tt.create, "getChildren2")
		l.Counter.Reset()
		if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("got %v, want ErrHeld", err)
		}
		want("TryAcquire of a held lock", "getChildren2")
		bounded.Release(t, lease)
	}
}

func TestTokenIsTheSequenceNumberPlusOneInTheNodesLineage(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	for want := uint64(1); want <= 3; want++ {
		lease := bounded.Acquire(t, l, "jobs/nightly")
		e, node := s.holder(t, "jobs/nightly"), s.stat(t, s.node("jobs/nightly"))
		tok := lease.Token()
		if tok.Seq != want || !strings.HasSuffix(e.path, fmt.Sprintf("-lock-%010d", want-1)) {
			t.Errorf("Seq is %d for the node %s, want %d", tok.Seq, e.path, want)
		}
		if lineage := fmt.Sprintf("zkseq:%s@%x.%d", s.root+"/jobs%2Fnightly", node.Czxid, node.Ctime); tok.Lineage != lineage {
			t.Errorf("Lineage is %q, want %q", tok.Lineage, lineage)
		}
		if tok.Holder == "" || tok.Holder != e.data {
			t.Errorf("Holder is %q, the node's data %q", tok.Holder, e.data)
		}
		bounded.Release(t, lease)
	}
	if n := s.stat(t, s.node("jobs/nightly")); n.EphemeralOwner != 0 || n.NumChildren != 0 {
		t.Errorf("the lock node is left as %+v, want a persistent one without children", n)
	}
}

func TestNumbersOfAReCreatedLockNodeAreAnotherLineage(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	first := bounded.Acquire(t, l, "a")
	bounded.Release(t, first)
	s.delete(t, s.node("a"))
	second := bounded.Acquire(t, l, "a")
	if a, b := first.Token(), second.Token(); a.Lineage == b.Lineage {
		t.Errorf("tokens %v and %v share a lineage, and the numbering began again", a, b)
	}
}

func TestTransactionIDsRiseAcrossAReCreatedLockNode(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.long()
	opts.UseZxid = true
	a, b := s.dial(t, s.addr, opts), s.dial(t, s.addr, opts)
	root := ""
	var last uint64
	for i, l := range []*zklock.Locker{a, b, a, b} {
		lease := bounded.Acquire(t, l, "x")
		tok, e, node := lease.Token(), s.holder(t, "x"), s.stat(t, s.root)
		if tok.Seq != uint64(e.czxid) || tok.Seq <= last {
			t.Errorf("Seq is %d after %d, the node was created by %d", tok.Seq, last, e.czxid)
		}
		if root = fmt.Sprintf("zkzxid:%s/x@%x.%d", s.root, node.Czxid, node.Ctime); tok.Lineage != root {
			t.Errorf("Lineage is %q, want %q", tok.Lineage, root)
		}
		last = tok.Seq
		bounded.Release(t, lease)
		if i%2 == 1 {
			s.delete(t, s.node("x"))
		}
	}
}

func TestTheTransactionIDSurvivesALostReply(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.long()
	opts.UseZxid = true
	l := s.counted(t, opts)
	bounded.Release(t, bounded.Acquire(t, l, "x"))
	lost := l.Counter.DropReply("multi")
	lease := bounded.Acquire(t, l, "x")
	bounded.Receive(t, "the lost reply", lost)
	if e := s.entries(t, "x"); len(e) != 1 || lease.Token().Seq != uint64(e[0].czxid) || lease.Token().Holder != e[0].data {
		t.Errorf("the token is %v, the entries are %+v", lease.Token(), e)
	}
	// The new connection may be to a server that lags behind.
	if got := l.Counter.Requests(); !slices.Contains(got, "sync") {
		t.Errorf("the entry was looked for by %v, want a sync before", got)
	}
}

func TestFailedAttemptsUseUpNoNumber(t *testing.T) {
	t.Parallel()
	s := shared(t)
	a, b := s.dial(t, s.addr, s.long()), s.dial(t, s.addr, s.long())
	lease := bounded.Acquire(t, a, "x")
	before := s.stat(t, s.node("x")).Cversion
	for range 5 {
		if _, err := b.TryAcquire(bounded.Context(t), "x"); !errors.Is(err, locks.ErrHeld) {
			t.Fatalf("got %v, want ErrHeld", err)
		}
	}
	if after := s.stat(t, s.node("x")).Cversion; after != before {
		t.Errorf("the version of the children went from %d to %d", before, after)
	}
	seq := lease.Token().Seq
	bounded.Release(t, lease)
	if next := bounded.Try(t, b, "x").Token().Seq; next != seq+1 {
		t.Errorf("the next number is %d after %d", next, seq)
	}
}

func TestForeignChildrenNeitherHoldNorWait(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, s.addr, s.long())
	bounded.Release(t, bounded.Acquire(t, l, "x"))
	s.create(t, s.node("x")+"/lock-", zk.FlagEphemeral|zk.FlagSequence)
	s.create(t, s.node("x")+"/_c_0b5e7bd1-2b5e-4c6a-8d0e-5a5f0d9c3b11-lock-", zk.FlagEphemeral|zk.FlagSequence)
	s.create(t, s.node("x")+"/notes", zk.FlagPersistent)
	// What a numbering that has wrapped would leave.
	s.create(t, s.node("x")+"/_c_ABCDEFGHIJKLMNOPQRSTUVWXYZ-lock--000000005", zk.FlagEphemeral)
	bounded.Release(t, bounded.Try(t, l, "x"))
	bounded.Release(t, bounded.Acquire(t, l, "x"))
}

// renumbered is a path to the server on which sequence numbers begin at first.
func renumbered(t *testing.T, s *site, first int32) *frames {
	shift := func(b []byte, by int32) []byte {
		for i := 0; ; i++ {
			next := bytes.Index(b[i:], []byte("-lock-"))
			if next < 0 || i+next+16 > len(b) {
				return b
			}
			i += next
			if n, err := strconv.ParseInt(string(b[i+6:i+16]), 10, 32); err == nil {
				copy(b[i+6:i+16], fmt.Sprintf("%010d", int32(n)+by))
			}
		}
	}
	return newFrames(t, s.addr,
		func(b []byte) []byte { return shift(b, -first) },
		func(b []byte) []byte { return shift(b, first) })
}

func TestSequenceNumbersEndBeforeTheyWrap(t *testing.T) {
	t.Parallel()
	for _, first := range []int32{1<<31 - 2, 1<<31 - 1<<20, -2, -99999999} {
		s := shared(t)
		l := s.dial(t, renumbered(t, s, first).addr, s.long())
		for range 2 {
			_, err := l.Acquire(bounded.Context(t), "x")
			if !errors.Is(err, locks.ErrUnsupported) || !strings.Contains(err.Error(), s.node("x")) {
				t.Errorf("from %d: got %v, want an error over ErrUnsupported that names the node", first, err)
			}
			bounded.Eventually(t, "the entry is removed", func() bool { return len(s.entries(t, "x")) == 0 })
		}
	}
	s := shared(t)
	l := s.dial(t, renumbered(t, s, 1<<31-1<<20-1).addr, s.long())
	if got, want := bounded.Acquire(t, l, "x").Token().Seq, uint64(1<<31-1<<20); got != want {
		t.Errorf("the last number is %d, want %d", got, want)
	}
}

func TestHalfOfTheNumbersGoneIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log logged
	s := shared(t)
	opts := s.long()
	opts.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})
	l := s.dial(t, renumbered(t, s, 1<<30-1).addr, opts)
	bounded.Release(t, bounded.Acquire(t, l, "x"))
	if got := log.count("half of the sequence numbers"); got != 0 {
		t.Errorf("logged %d times below 2^30, want 0", got)
	}
	for range 3 {
		bounded.Release(t, bounded.Acquire(t, l, "x"))
	}
	if got := log.count("half of the sequence numbers"); got != 1 {
		t.Errorf("logged %d times, want once", got)
	}
}

// logged collects what is logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}
