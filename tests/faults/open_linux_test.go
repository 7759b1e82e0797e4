package faults_test

import (
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/wired"
)

// ttl is the lease time of every service. etcd has whole seconds, and one is too
// short for a machine that is busy with other tests.
const ttl = 2 * time.Second

// The services, as rows of the matrix.
const (
	redisName     = "redislock"
	redlockName   = "Redlock"
	etcdName      = "etcdlock"
	zooKeeperName = "zklock"
)

// access is what a process needs to know to be a client.
type access struct {
	Service string
	Addrs   []string
	Space   string // what the locks of one run have in common
}

// open returns a Locker with connections of its own.
func (a access) open() (locks.Locker, error) {
	switch a.Service {
	case redisName:
		return wired.Made(redislock.Dial("redis://"+a.Addrs[0], &redislock.Options{Prefix: a.Space, TTL: ttl}))
	case redlockName:
		var urls []string
		for _, addr := range a.Addrs {
			urls = append(urls, "redis://"+addr)
		}
		return wired.Made(redislock.DialRedlock(urls, &redislock.RedlockOptions{Prefix: a.Space, TTL: ttl, NodeTimeout: ttl / 6}))
	case etcdName:
		return wired.Made(etcdlock.Dial("etcd://"+a.Addrs[0], &etcdlock.Options{Prefix: a.Space, TTL: ttl}))
	case zooKeeperName:
		return wired.Made(zklock.Dial("zk://"+a.Addrs[0], &zklock.Options{Root: "/" + a.Space, SessionTimeout: ttl}))
	}
	return nil, fmt.Errorf("no service %q", a.Service)
}
