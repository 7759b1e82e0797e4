package deployments_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func redisUnderSentinels(t testing.TB) *deployment {
	s := servers.StartSentinels(t, nil)
	observer := sentinelClient(t, s, nil)
	d := &deployment{
		addrs: append(s.Addrs(), s.Members[0].Addr(), s.Members[1].Addr()),
		connect: func(t testing.TB, n network, ttl time.Duration) locks.Locker {
			return redisLocker(t, sentinelClient(t, s, n), &redislock.Options{TTL: ttl})
		},
		entries: func(t testing.TB, name string) []string {
			return redisEntries(t, observer, redisKey(name))
		},
		killLeader: func(t testing.TB) {
			master := s.Members[s.Master(t)]
			replicated(t, master)
			master.Kill(t)
		},
		name: sameName,
	}
	return d
}

func redisClusterWithReplicas(t testing.TB) *deployment {
	c := servers.StartRedisCluster(t, &servers.ClusterOptions{Replicas: true})
	return redisCluster(t, c, func(t testing.TB, victim *servers.Redis) {
		replicated(t, victim)
		victim.Kill(t)
	})
}

func redisClusterOfMasters(t testing.TB) *deployment {
	c := servers.StartRedisCluster(t, &servers.ClusterOptions{Redis: servers.RedisOptions{AppendOnly: true}})
	return redisCluster(t, c, func(t testing.TB, victim *servers.Redis) { victim.Restart(t) })
}

func redisCluster(t testing.TB, c *servers.RedisCluster, kill func(testing.TB, *servers.Redis)) *deployment {
	const victim = 1
	return &deployment{
		addrs: c.Addrs(),
		connect: func(t testing.TB, n network, ttl time.Duration) locks.Locker {
			return redisLocker(t, clusterClient(t, c, n), &redislock.Options{TTL: ttl})
		},
		entries: func(t testing.TB, name string) []string {
			node := redis.NewClient(&redis.Options{Addr: c.Members[c.Owner(t, redisKey(name))].Addr()})
			defer node.Close()
			return redisEntries(t, node, redisKey(name))
		},
		killLeader: func(t testing.TB) { kill(t, c.Members[victim]) },
		name: func(t testing.TB, name string) string {
			for i := 0; ; i++ {
				if n := fmt.Sprint(name, i); c.Owner(t, redisKey(n)) == victim {
					return n
				}
			}
		},
	}
}

// replicated waits until the replica has what was written up to now. Redis does not:
// a failover may forget a grant, which is another test.
func replicated(t testing.TB, master *servers.Redis) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: master.Addr(), ContextTimeoutEnabled: true})
	defer client.Close()
	bounded.Eventually(t, "the replica has all writes", func() bool {
		var confirmed *redis.Cmd
		_, err := client.Pipelined(bounded.Context(t), func(p redis.Pipeliner) error {
			p.FunctionFlush(t.Context()) // a write without a key
			confirmed = p.Do(t.Context(), "WAIT", 1, 300)
			return nil
		})
		if err != nil {
			return false
		}
		n, err := confirmed.Int()
		return err == nil && n == 1
	})
}

// redlockServers lead all three, or none.
func redlockServers(t testing.TB) *deployment {
	all := servers.StartRedisServers(t, 3, nil)
	var addrs []string
	for _, s := range all {
		addrs = append(addrs, s.Addr())
	}
	return &deployment{
		addrs: addrs,
		connect: func(t testing.TB, n network, ttl time.Duration) locks.Locker {
			var urls []string
			for _, addr := range n.via(addrs) {
				urls = append(urls, "redis://"+addr)
			}
			l, err := redislock.DialRedlock(urls, &redislock.RedlockOptions{TTL: ttl})
			return closing(t, l, err)
		},
		entries: func(t testing.TB, name string) (found []string) {
			for _, s := range all {
				if s.PID() == 0 {
					continue
				}
				c := redis.NewClient(&redis.Options{Addr: s.Addr()})
				found = append(found, redisEntries(t, c, "fencedkv:redlock:{"+name+"}:")...)
				c.Close()
			}
			slices.Sort(found)
			return slices.Compact(found)
		},
		killLeader: func(t testing.TB) { all[1].Kill(t) },
		name:       sameName,
	}
}

func sentinelClient(t testing.TB, s *servers.Sentinels, n network) *redis.Client {
	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: servers.SentinelMaster, SentinelAddrs: s.Addrs(), Dialer: n.dial,
		ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	t.Cleanup(func() { c.Close() })
	return c
}

func clusterClient(t testing.TB, s *servers.RedisCluster, n network) *redis.ClusterClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: s.Addrs(), Dialer: n.dial, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	t.Cleanup(func() { c.Close() })
	return c
}

func redisLocker(t testing.TB, client redislock.Client, o *redislock.Options) *redislock.Locker {
	t.Helper()
	l, err := redislock.New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bounded.Patience)
		defer cancel()
		if err := l.Close(ctx); err != nil && !errors.Is(err, locks.ErrUnreachable) {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

// redisKey begins the keys of a lock whose name needs no escape.
func redisKey(name string) string { return "fencedkv:{" + name + "}:" }

// redisEntries are the grant, the waiters, and keys that are none of those that
// may outlive an attempt; key begins those of the lock.
func redisEntries(t testing.TB, c *redis.Client, key string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bounded.Patience)
	defer cancel()
	keys, err := c.Keys(ctx, key+"*").Result()
	if err != nil {
		t.Fatalf("read the keys at %q: %v", key, err)
	}
	waiters, err := c.ZRange(ctx, key+"queue", 0, -1).Result()
	if err != nil {
		t.Fatalf("read the queue at %q: %v", key, err)
	}
	return append(waiters, slices.DeleteFunc(keys, func(k string) bool {
		k = strings.TrimPrefix(k, key)
		return k == "last" || k == "count" || k == "queue" || k == "alive" || strings.HasPrefix(k, "gone:")
	})...)
}
