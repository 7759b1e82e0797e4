package zklock_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// patient is a server of the test's own with sessions that are neither renewed
// nor looked at again in the time of a test.
func patient(t *testing.T) (*site, *zklock.Options) {
	t.Helper()
	srv := servers.StartZooKeeper(t, &servers.ZooKeeperOptions{Config: []string{"maxSessionTimeout=600000"}})
	s := newSite(t, srv.Addr())
	return s, &zklock.Options{Root: s.root, SessionTimeout: 600 * time.Second}
}

var zxidLine = regexp.MustCompile(`(?m)^Zxid: 0x([0-9a-f]+)$`)

// commits returns the id of the last transaction: each is a commit of a quorum.
func (s *site) commits(t testing.TB) int64 {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.addr, bounded.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	m := zxidLine.FindSubmatch(answer)
	if m == nil {
		t.Fatalf("srvr answered %q, want a Zxid", answer)
	}
	n, err := strconv.ParseInt(string(m[1]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// cost is what one step asks of ZooKeeper.
type cost struct {
	requests []string
	trips    int
	commits  int64
}

func (c cost) is(requests ...string) bool {
	return slices.Equal(c.requests, requests) && c.trips == len(requests) && c.commits == 1
}

func (s *site) cost(t testing.TB, counter *proxy.Counter, step func()) cost {
	t.Helper()
	counter.Reset()
	before := s.commits(t)
	step()
	return cost{counter.Requests(), counter.RoundTrips(), s.commits(t) - before}
}

// A lock costs what the one of the client library costs: a commit and a read to
// take it, and a commit to give it back.
func TestALockCostsOneCommitEachWay(t *testing.T) {
	t.Parallel()
	s, opts := patient(t)
	l := s.counted(t, opts)
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	counter := proxy.CountZooKeeper(t, s.addr)
	lock := zk.NewLock(newClient(t, counter.Addr()), "/zklock/a", zk.WorldACL(zk.PermAll))
	both := func() {
		if err := lock.Lock(); err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
	both()
	for range 2 {
		var lease *locks.Lease
		took := s.cost(t, l.Counter, func() { lease = bounded.Acquire(t, l, "a") })
		gave := s.cost(t, l.Counter, func() { bounded.Release(t, lease) })
		if !took.is("create", "getChildren2") || !gave.is("delete") {
			t.Errorf("Acquire %+v, Release %+v; want create and getChildren2, delete, one commit each", took, gave)
		}
		theirs := s.cost(t, counter, both)
		if !slices.Equal(theirs.requests, slices.Concat(took.requests, gave.requests)) || theirs.commits != 2 {
			t.Errorf("zk.Lock: %+v, want the same requests and commits", theirs)
		}
	}
	held := bounded.Acquire(t, l, "a")
	refused := s.cost(t, l.Counter, func() {
		if _, err := l.TryAcquire(bounded.Context(t), "a"); err == nil {
			t.Error("TryAcquire of a held lock: got a lease")
		}
	})
	if !slices.Equal(refused.requests, []string{"getChildren2"}) || refused.commits != 0 {
		t.Errorf("TryAcquire of a held lock: %+v, want one read", refused)
	}
	bounded.Release(t, held)
}

// Every waiter has a place, and a release costs the same however many there are.
func TestAHandoverCostsTheSameWith500Waiters(t *testing.T) {
	t.Parallel()
	s, opts := patient(t)
	counter := proxy.CountZooKeeper(t, s.addr)
	const lockers, waiters, handovers = 10, 500, 20
	held := bounded.Acquire(t, s.dial(t, counter.Addr(), opts), "a")
	ctx, cancel := context.WithCancel(t.Context())
	granted := make(chan *locks.Lease, 1)
	counter.Reset()
	for range lockers {
		l := s.dial(t, counter.Addr(), opts)
		for range waiters / lockers {
			go func() {
				if lease, err := l.Acquire(ctx, "a"); err == nil {
					granted <- lease
				}
			}()
		}
	}
	watches := func() (n int) {
		for _, r := range counter.Requests() {
			if r == "getData" {
				n++
			}
		}
		return n
	}
	bounded.Eventually(t, "all wait", func() bool { return watches() == waiters })

	counter.Reset()
	before := s.commits(t)
	for range handovers {
		bounded.Release(t, held)
		held = bounded.Receive(t, "the next holder", granted)
	}
	commits, requests := s.commits(t)-before, counter.Requests()
	t.Logf("a handover with %d waiters: %.2f requests and %.2f commits",
		waiters, float64(len(requests))/handovers, float64(commits)/handovers)
	// The release, and the read of the one that wakes.
	if want := slices.Repeat([]string{"delete", "getChildren2"}, handovers); !slices.Equal(requests, want) || commits != handovers {
		t.Errorf("%d handovers: %d commits, %v", handovers, commits, requests)
	}
	cancel()
	bounded.Release(t, held)
	bounded.Eventually(t, "the waiters are gone", func() bool {
		_, stat, err := s.direct.Children(s.node("a"))
		return err == nil && stat.NumChildren == 0
	})
}

func TestManyLocksShareOneConnectionAndOneSession(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.long())
	opened := l.Counter.Connections() // one has asked for the server's version
	var held []*locks.Lease
	var waiting []<-chan bounded.Result
	owners := map[int64]bool{}
	for i := range 100 {
		name := fmt.Sprint(i)
		held = append(held, bounded.Acquire(t, l, name))
		waiting = append(waiting, s.wait(t, l, name, 2))
		for _, e := range s.entries(t, name) {
			owners[e.owner] = true
		}
	}
	if len(owners) != 1 {
		t.Errorf("%d sessions, want one", len(owners))
	}
	if n := l.Counter.Connections(); n != opened {
		t.Errorf("%d connections more, want none", n-opened)
	}
	for i := range held {
		bounded.Release(t, held[i])
		bounded.Release(t, bounded.Granted(t, "a waiter", waiting[i]))
	}
}
