package prove_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/wired"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// ttl is the lease time of every service: the shortest that etcd has.
const ttl = time.Second

// service is a lock service as a process needs to know it.
type service struct {
	Name      string
	Addrs     []string
	Namespace string // of one run
}

// anew is the service for another run.
func (s service) anew() service {
	s.Namespace = rand.Text()
	return s
}

// services are the lock services, and how to start the servers of each.
var services = []struct {
	name  string
	start func(testing.TB) []string
}{
	{"Redis", func(t testing.TB) []string { return []string{servers.StartRedis(t, nil).Addr()} }},
	{"Redlock", func(t testing.TB) (all []string) {
		for range 3 {
			all = append(all, servers.StartRedis(t, &servers.RedisOptions{AppendOnly: true}).Addr())
		}
		return all
	}},
	{"etcd", func(t testing.TB) []string { return []string{servers.StartEtcd(t, nil).Addr()} }},
	{"ZooKeeper", func(t testing.TB) []string { return []string{servers.StartZooKeeper(t, nil).Addr()} }},
}

// open returns a Locker with a connection of its own.
func (s service) open() (locks.Locker, error) {
	switch s.Name {
	case "Redis":
		return wired.Made(redislock.Dial("redis://"+s.Addrs[0], &redislock.Options{Prefix: s.Namespace, TTL: ttl}))
	case "Redlock":
		var all []string
		for _, addr := range s.Addrs {
			all = append(all, "redis://"+addr)
		}
		return wired.Made(redislock.DialRedlock(all, &redislock.RedlockOptions{Prefix: s.Namespace, TTL: ttl, NodeTimeout: ttl / 4}))
	case "etcd":
		return wired.Made(etcdlock.Dial("etcd://"+s.Addrs[0], &etcdlock.Options{Prefix: s.Namespace, TTL: ttl}))
	case "ZooKeeper":
		return wired.Made(zklock.Dial("zk://"+s.Addrs[0], &zklock.Options{Root: "/" + s.Namespace, SessionTimeout: ttl}))
	}
	return nil, fmt.Errorf("no service %q", s.Name)
}
