package zklock_test

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/internal/wired"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// site is a ZooKeeper server and a root of the test's own on it.
type site struct {
	addr   string
	root   string
	direct *zk.Conn // not through any proxy
}

func newSite(t testing.TB, addr string) *site {
	t.Helper()
	return &site{addr: addr, root: "/test/" + rand.Text(), direct: newClient(t, addr)}
}

func shared(t testing.TB) *site {
	t.Helper()
	return newSite(t, servers.SharedZooKeeper(t))
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

type silent struct{}

func (silent) Printf(string, ...any) {}

func newClient(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, 4*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		for range events {
		}
	})
	return c
}

// options are short sessions below the site's root.
func (s *site) options() *zklock.Options {
	return &zklock.Options{Root: s.root, SessionTimeout: time.Second}
}

// long are the longest sessions of a server with default options.
func (s *site) long() *zklock.Options {
	return &zklock.Options{Root: s.root, SessionTimeout: 4 * time.Second}
}

func dial(t testing.TB, addr string, opts *zklock.Options) *zklock.Locker {
	t.Helper()
	l, err := zklock.Dial("zk://"+addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dial makes a Locker that is closed at the end.
func (s *site) dial(t testing.TB, addr string, opts *zklock.Options) *zklock.Locker {
	t.Helper()
	l := dial(t, addr, opts)
	t.Cleanup(func() { bounded.Close(t, l) })
	return l
}

// counted is a Locker behind a network that can be cut, before a counter.
type counted struct {
	*zklock.Locker
	wired.Wire
}

func (s *site) counted(t testing.TB, opts *zklock.Options) *counted {
	t.Helper()
	c := s.open(t, opts)
	t.Cleanup(func() { bounded.Close(t, c.Locker) })
	return c
}

// open is counted for a Locker that the caller closes.
func (s *site) open(t testing.TB, opts *zklock.Options) *counted {
	t.Helper()
	c := &counted{Wire: wired.New(t, proxy.CountZooKeeper(t, s.addr))}
	c.Locker = dial(t, c.Network.Addr(), opts)
	return c
}

// node is the lock node of a name that needs no other escape.
func (s *site) node(name string) string { return s.root + "/" + url.PathEscape(name) }

// entry is a child of a lock node.
type entry struct {
	path  string
	seq   string
	owner int64 // the session
	czxid int64
	data  string
}

// entries are the attempts at the lock, the holder's first.
func (s *site) entries(t testing.TB, name string) []entry {
	t.Helper()
	var all []entry
	children, _, err := s.direct.Children(s.node(name))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		t.Fatalf("read the entries: %v", err)
	}
	for _, child := range children {
		if !strings.HasPrefix(child, "_c_") {
			continue
		}
		path := s.node(name) + "/" + child
		data, stat, err := s.direct.Get(path)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			t.Fatalf("read an entry: %v", err)
		}
		all = append(all, entry{path, child[strings.LastIndex(child, "-lock-"):], stat.EphemeralOwner, stat.Czxid, string(data)})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// holder is the entry that has the lock.
func (s *site) holder(t testing.TB, name string) entry {
	t.Helper()
	all := s.entries(t, name)
	if len(all) == 0 {
		t.Fatalf("lock %q has no entry", name)
	}
	return all[0]
}

func (s *site) delete(t testing.TB, path string) {
	t.Helper()
	if err := s.direct.Delete(path, -1); err != nil {
		t.Fatalf("delete %s: %v", path, err)
	}
}

func (s *site) create(t testing.TB, path string, flags int32) string {
	t.Helper()
	created, err := s.direct.Create(path, []byte("by hand"), flags, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
	return created
}

func (s *site) stat(t testing.TB, path string) *zk.Stat {
	t.Helper()
	ok, stat, err := s.direct.Exists(path)
	if err != nil || !ok {
		t.Fatalf("%s is not there: %v", path, err)
	}
	return stat
}

// wait starts an Acquire and returns when its entry is the last of n.
func (s *site) wait(t testing.TB, l locks.Locker, name string, n int) <-chan bounded.Result {
	t.Helper()
	return bounded.Queue(t, l, name, func() bool { return len(s.entries(t, name)) == n })
}
