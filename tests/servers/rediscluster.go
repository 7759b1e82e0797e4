package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/tests/internal/provision"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
)

// ClusterOptions are the settings of a Redis Cluster; nil means the defaults.
type ClusterOptions struct {
	// Redis is for each server, without TLS and password. AppendOnly keeps the
	// data of a master that is started again.
	Redis RedisOptions
	// Replicas gives each master one, which takes its place when it has not
	// been seen for a second and a half, after another second or two.
	Replicas bool
}

// RedisCluster is a Redis Cluster of three masters, which share the slots. When
// one is away the others go on with theirs.
type RedisCluster struct {
	// Members are the three masters, then their replicas in the same order, if
	// there are any.
	Members []*Redis
}

// StartRedisCluster starts a cluster of the test's own.
func StartRedisCluster(t testing.TB, opts *ClusterOptions) *RedisCluster {
	t.Helper()
	path, err := provision.Redis(t.Context(), nil)
	if err != nil {
		unavailable(t, err)
	}
	o := orDefaults(opts)
	group, err := newGroup(func() ([]member, error) { return planRedisCluster(path, o) })
	ownGroup(t, group, err)
	c := &RedisCluster{}
	for _, in := range group {
		c.Members = append(c.Members, &Redis{in})
	}
	for i, m := range c.Members {
		if err := m.meet(i, c.Members[0]); err != nil {
			t.Fatalf("servers: make the cluster: %v", err)
		}
	}
	settled(t, func() error { return c.agree(len(c.Members)) })
	for i, m := range c.Members[clusterMasters:] {
		settled(t, func() error { return m.follow(c.Members[i]) })
		settled(t, c.Members[i].streams)
	}
	settled(t, func() error { return c.agree(len(c.Members)) })
	return c
}

// Addrs are host:port of all members.
func (c *RedisCluster) Addrs() []string { return addresses(c.Members) }

// Owner waits until all members that run name the same one, which runs, as the
// master of the key's slot, and tells which.
func (c *RedisCluster) Owner(t testing.TB, key string) (owner int) {
	t.Helper()
	settled(t, func() (err error) {
		owner, err = c.owner(key)
		return err
	})
	return owner
}

func (c *RedisCluster) owner(key string) (int, error) {
	if err := c.agree(len(c.Members)); err != nil {
		return -1, err
	}
	named := ""
	for _, m := range c.Members {
		if m.PID() == 0 {
			continue
		}
		err := withRedis(m.Addr(), func(ctx context.Context, client *redis.Client) error {
			addr, err := ownerOf(ctx, client, key)
			if err == nil && named != "" && addr != named {
				err = fmt.Errorf("the members name %s and %s", named, addr)
			}
			named = addr
			return err
		})
		if err != nil {
			return -1, err
		}
	}
	for i, m := range c.Members {
		if m.Addr() == named && m.PID() != 0 {
			return i, nil
		}
	}
	return -1, fmt.Errorf("the members name %q, which does not run", named)
}

func ownerOf(ctx context.Context, client *redis.Client, key string) (string, error) {
	slot, err := client.ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return "", err
	}
	shards, err := client.ClusterShards(ctx).Result()
	if err != nil {
		return "", err
	}
	for _, shard := range shards {
		has := slices.ContainsFunc(shard.Slots, func(r redis.SlotRange) bool { return r.Start <= slot && slot <= r.End })
		for _, node := range shard.Nodes {
			if has && node.Role == "master" {
				return fmt.Sprintf("%s:%d", node.IP, node.Port), nil
			}
		}
	}
	return "", fmt.Errorf("nobody has slot %d", slot)
}

// agree tells whether every member that runs knows n and finds the cluster fit.
func (c *RedisCluster) agree(n int) error {
	for i, m := range c.Members {
		if m.PID() == 0 {
			continue
		}
		err := withRedis(m.Addr(), func(ctx context.Context, client *redis.Client) error {
			info, err := client.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			for _, want := range []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d", n)} {
				if !strings.Contains(info, want+"\r\n") {
					return fmt.Errorf("it does not say %s but %q", want, info)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
	}
	return nil
}

// meet gives the server its third of the slots, if it is to be a master, and
// introduces it to the first.
func (s *Redis) meet(i int, first *Redis) error {
	return withRedis(s.Addr(), func(ctx context.Context, c *redis.Client) error {
		// Members with one epoch would have to settle first who has which.
		if err := c.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
		if i < clusterMasters {
			from, to := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1
			if err := c.ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
				return err
			}
		}
		if i == 0 {
			return nil
		}
		return c.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", first.port, first.prog.(*redisProgram).bus).Err()
	})
}

// follow makes the server a replica.
func (s *Redis) follow(master *Redis) error {
	var id string
	err := withRedis(master.Addr(), func(ctx context.Context, c *redis.Client) (err error) {
		id, err = c.ClusterMyID(ctx).Result()
		return err
	})
	if err != nil {
		return err
	}
	return withRedis(s.Addr(), func(ctx context.Context, c *redis.Client) error {
		return c.ClusterReplicate(ctx, id).Err()
	})
}

func planRedisCluster(path string, o ClusterOptions) ([]member, error) {
	n := clusterMasters
	if o.Replicas {
		n *= 2
	}
	if o.Redis.TLS != nil || o.Redis.Password != "" {
		return nil, errors.New("a Redis Cluster with TLS or a password is not made here")
	}
	ports, err := freePorts(2 * n)
	if err != nil {
		return nil, err
	}
	var members []member
	for i, port := range ports[:n] {
		opts := o.Redis
		opts.Config = append([]string{
			"cluster-enabled yes",
			fmt.Sprintf("cluster-port %d", ports[n+i]),
			"cluster-announce-ip 127.0.0.1",
			"cluster-node-timeout 1500",
			"cluster-require-full-coverage no",
			"cluster-replica-validity-factor 0",
			"repl-diskless-sync-delay 0",
		}, opts.Config...)
		members = append(members, member{&redisProgram{path: path, opts: opts, bus: ports[n+i]}, port})
	}
	return members, nil
}
