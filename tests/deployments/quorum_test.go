package deployments_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func zooKeeperEnsemble(t testing.TB) *deployment {
	e := servers.StartEnsemble(t, &servers.EnsembleOptions{
		ZooKeeper: servers.ZooKeeperOptions{Config: []string{"maxSessionTimeout=60000"}},
	})
	e.Leader(t)
	observer := zooKeeperClient(t, e.Addrs())
	return &deployment{
		addrs: e.Addrs(),
		connect: func(t testing.TB, n network, ttl time.Duration) locks.Locker {
			l, err := zklock.Dial("zk://"+strings.Join(n.via(e.Addrs()), ",")+"/locks", &zklock.Options{SessionTimeout: ttl})
			return closing(t, l, err)
		},
		entries: func(t testing.TB, name string) []string {
			children, _, err := observer.Children("/locks/" + name)
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				t.Fatalf("read the entries of %q: %v", name, err)
			}
			return children
		},
		killLeader: func(t testing.TB) { e.Members[e.Leader(t)].Kill(t) },
		name:       sameName,
	}
}

func etcdCluster(t testing.TB) *deployment {
	c := servers.StartEtcdCluster(t, nil)
	observer := etcdClient(t, c.Addrs())
	return &deployment{
		addrs: c.Addrs(),
		connect: func(t testing.TB, n network, ttl time.Duration) locks.Locker {
			l, err := etcdlock.Dial("etcd://"+strings.Join(n.via(c.Addrs()), ","), &etcdlock.Options{TTL: ttl})
			return closing(t, l, err)
		},
		entries: func(t testing.TB, name string) []string {
			return etcdEntries(t, observer, etcdlock.DefaultPrefix+"/"+name+"/")
		},
		killLeader: func(t testing.TB) { c.Members[c.Leader(t)].Kill(t) },
		name:       sameName,
	}
}

// closing makes the test's end close the Locker.
func closing[L locks.Locker](t testing.TB, l L, err error) L {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bounded.Close(t, l) })
	return l
}

func etcdClient(t testing.TB, addrs []string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: addrs, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func etcdEntries(t testing.TB, c *clientv3.Client, prefix string) (keys []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bounded.Patience)
	defer cancel()
	resp, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatalf("read the entries at %q: %v", prefix, err)
	}
	for _, kv := range resp.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func zooKeeperClient(t testing.TB, addrs []string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect(addrs, 20*time.Second, zk.WithLogger(quiet{}))
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
