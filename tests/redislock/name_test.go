package redislock_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

var names = []string{
	"a", "a/b", "a%2Fb", "{a}", "a}", "{", "}{", "{}", "a:lock", "a ", "\x00", "a\x00b", "\xff\xfe",
	"Grüße", "锁", "a\r\nb", "*", "?", strings.Repeat("x", locks.MaxName), strings.Repeat("{", locks.MaxName),
}

// A Cluster refuses a script whose keys are in two slots, so the names are
// tried on one: a single node that has all slots.
func TestAnyNameIsALockOfItsOwnInACluster(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, &servers.RedisOptions{Config: []string{"cluster-enabled yes"}})
	node := newClient(t, srv.Addr())
	if err := node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	bounded.Eventually(t, "the cluster is up", func() bool {
		return strings.Contains(node.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{srv.Addr()}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	l := newLocker(t, client, rarePolls("p"))

	var leases []*locks.Lease
	lineages := make(map[string]string)
	for _, name := range names {
		lease, err := l.TryAcquire(bounded.Context(t), name)
		if err != nil {
			t.Fatalf("TryAcquire %.20q beside %d other names: %v", name, len(leases), err)
		}
		leases = append(leases, lease)
		lineage := lease.Token().Lineage
		if other, ok := lineages[lineage]; ok {
			t.Errorf("%.20q and %.20q share the lineage %q", name, other, lineage)
		}
		lineages[lineage] = name
	}
	for i, lease := range leases {
		done := bounded.Acquiring(bounded.Context(t), l, names[i])
		bounded.Eventually(t, "it waits and has subscribed", func() bool {
			return len(node.Keys(t.Context(), "p:{*}:queue").Val()) == 1 && listening(t, node, "p") == 1
		})
		bounded.Release(t, lease)
		bounded.Release(t, bounded.Granted(t, "waiter for "+lease.Name()[:1], done))
	}
}

func TestPrefixAndNameAreNotMixedUp(t *testing.T) {
	t.Parallel()
	client := newClient(t, servers.SharedRedis(t))
	base := space()
	one := bounded.Acquire(t, newLocker(t, client, &redislock.Options{Prefix: base + ":b"}), "c")
	two := bounded.Acquire(t, newLocker(t, client, &redislock.Options{Prefix: base}), "b:c")
	if one.Token().Lineage == two.Token().Lineage {
		t.Errorf("two locks share the lineage %q", one.Token().Lineage)
	}
	bounded.Release(t, one)
	bounded.Release(t, two)
}
