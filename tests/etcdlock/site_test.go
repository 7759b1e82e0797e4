package etcdlock_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/internal/wired"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(holderEnv); addr != "" {
		hold(addr)
		return
	}
	servers.Main(m)
}

const (
	pathTxn   = "/etcdserverpb.KV/Txn"
	pathWatch = "/etcdserverpb.Watch/Watch"
)

// site is an etcd server and a prefix of the test's own on it.
type site struct {
	addr   string
	prefix string
	direct *clientv3.Client // not through any proxy
}

func newSite(t testing.TB, addr string) *site {
	t.Helper()
	return &site{addr: addr, prefix: "test/" + rand.Text(), direct: newClient(t, addr)}
}

func shared(t testing.TB) *site {
	t.Helper()
	return newSite(t, servers.SharedEtcd(t))
}

func newClient(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{"http://" + addr},
		DialTimeout: bounded.Patience,
		Logger:      zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// options are short-lived leases under the site's prefix.
func (s *site) options() *etcdlock.Options {
	return &etcdlock.Options{Prefix: s.prefix, TTL: time.Second}
}

// long are leases that cannot run out during the test.
func (s *site) long() *etcdlock.Options {
	return &etcdlock.Options{Prefix: s.prefix, TTL: 60 * time.Second}
}

func (s *site) dial(t testing.TB, addr string, opts *etcdlock.Options) *etcdlock.Locker {
	t.Helper()
	l, err := etcdlock.Dial("etcd://"+addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bounded.Close(t, l) })
	return l
}

// counted is a Locker behind a counter, behind a network that can be cut.
type counted struct {
	*etcdlock.Locker
	wired.Wire
}

func (s *site) counted(t testing.TB, opts *etcdlock.Options) *counted {
	t.Helper()
	c := &counted{Wire: wired.New(t, proxy.CountEtcd(t, s.addr))}
	c.Locker = s.dial(t, c.Network.Addr(), opts)
	return c
}

func (s *site) queue(name string) string { return s.prefix + "/" + url.PathEscape(name) + "/" }

// entries are the keys of the lock, the holder's first.
func (s *site) entries(t testing.TB, name string) []entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bounded.Patience)
	defer cancel()
	resp, err := s.direct.Get(ctx, s.queue(name), clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		t.Fatalf("read the entries: %v", err)
	}
	var all []entry
	for _, kv := range resp.Kvs {
		all = append(all, entry{string(kv.Key), kv.CreateRevision, clientv3.LeaseID(kv.Lease), string(kv.Value)})
	}
	return all
}

type entry struct {
	key    string
	rev    int64
	lease  clientv3.LeaseID
	holder string
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

func (s *site) delete(t testing.TB, key string) {
	t.Helper()
	resp, err := s.direct.Delete(t.Context(), key)
	if err != nil || resp.Deleted != 1 {
		t.Fatalf("delete %q: %v, %v, want one key deleted", key, resp, err)
	}
}

// wait starts an Acquire and returns when its entry is the last of n.
func (s *site) wait(t testing.TB, l locks.Locker, name string, n int) <-chan bounded.Result {
	t.Helper()
	return bounded.Queue(t, l, name, func() bool { return len(s.entries(t, name)) == n })
}

// waits is wait for a client that knows its place when waits returns. A fault
// that comes before the answer to its first request ends Acquire instead.
func (s *site) waits(t testing.TB, l *counted, name string, n int) <-chan bounded.Result {
	t.Helper()
	waiter := s.wait(t, l, name, n)
	bounded.Eventually(t, "the waiter's watch", l.watches)
	return waiter
}

func (c *counted) watches() bool { return slices.Contains(c.Counter.Requests(), pathWatch) }
