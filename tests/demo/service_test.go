package demo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestShownOnARealRedisAndNothingIsLeftThere(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	client := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer client.Close()
	onService(t, "redis://"+srv.Addr(), "1s", "redis:", func() []string {
		keys, err := client.Keys(t.Context(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return keys
	})
}

func TestShownOnARealEtcdAndNothingIsLeftThere(t *testing.T) {
	t.Parallel()
	srv := servers.StartEtcd(t, nil)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + srv.Addr()}, DialTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	onService(t, "etcd://"+srv.Addr(), "1s", "etcd:", func() (keys []string) {
		all, err := client.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range all.Kvs {
			keys = append(keys, string(kv.Key))
		}
		return keys
	})
}

func TestShownOnARealZooKeeperAndOnlyThePathIsLeftThere(t *testing.T) {
	t.Parallel()
	srv := servers.StartZooKeeper(t, nil)
	conn, _, err := zk.Connect([]string{srv.Addr()}, 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	onService(t, "zk://"+srv.Addr()+"/demo", "1s", "zkseq:/demo/", func() []string {
		nodes, _, err := conn.Children("/demo")
		if err != nil {
			t.Fatal(err)
		}
		return nodes
	})
}

// onService plays to the end, and once more with a Ctrl-C while client A is
// stopped and client B waits. left lists what is on the service.
func onService(t *testing.T, address, ttl, lineage string, left func() []string) {
	t.Helper()
	got := run(t, "--json", "--lock="+address, "--ttl="+ttl)
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("status %d, stderr %q; want 0 and nothing", got.status, got.stderr)
	}
	events := checkShown(t, got.stdout)
	if got := find(t, events, "fenced", "B", "acquired").Token.Lineage; !strings.HasPrefix(got, lineage) {
		t.Errorf("the lineage is %q, want one that begins with %q", got, lineage)
	}
	if keys := left(); len(keys) > 0 {
		t.Errorf("left on the service: %q", keys)
	}

	interrupted(t, moment{"unfenced", "B acquiring"}, "--lock="+address, "--ttl="+ttl)
	if keys := left(); len(keys) > 0 {
		t.Errorf("left on the service after Ctrl-C: %q", keys)
	}
}

func TestStatus2ForALeaseTimeThatTheServiceDoesNotKeep(t *testing.T) {
	t.Parallel()
	srv := servers.StartZooKeeper(t, nil)
	got := run(t, "--lock=zk://"+srv.Addr(), "--ttl=30s")
	if got.status != 2 || !strings.Contains(got.stderr, "give a --ttl that the service keeps") {
		t.Errorf("status %d, stderr %q; want 2 and the remedy", got.status, got.stderr)
	}
}
