package verify_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

const (
	// A lease lives on through every pause of a server.
	ttl = 60 * time.Second
	// A verifier gives up after this.
	patience = 5 * time.Second
)

// client is a Locker and the Verifier that it is.
type client interface {
	locks.Locker
	fence.Verifier
}

// service is one lock service on servers of its own.
type service struct {
	holder, other, verifier client

	servers []servers.Server
	// waiting are the tokens that the waiters of a lock have, or would make up
	// from what they know of themselves.
	waiting func(t testing.TB, name string) []fence.Token
	// forget makes the service lose what it has of the lock.
	forget func(t testing.TB, name string)
}

func (s *service) pause(t testing.TB) (resume func()) {
	t.Helper()
	for _, srv := range s.servers {
		srv.Pause(t)
	}
	return func() {
		t.Helper()
		for _, srv := range s.servers {
			srv.Resume(t)
		}
	}
}

func closed[L client](t testing.TB, l L, err error) L {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bounded.Patience)
		defer cancel()
		_ = l.Close(ctx) // leases that a test took away are lost
	})
	return l
}

func three(make func() client) *service {
	return &service{holder: make(), other: make(), verifier: make()}
}

func redisClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { c.Close() })
	return c
}

func startRedis(t testing.TB) *service {
	srv := servers.StartRedis(t, nil) // which keeps nothing
	s := three(func() client {
		l, err := redislock.New(redisClient(t, srv.Addr()), &redislock.Options{TTL: ttl, RequestTimeout: patience})
		return closed(t, l, err)
	})
	s.servers = []servers.Server{srv}
	s.waiting = redisWaiters([]*redis.Client{redisClient(t, srv.Addr())}, func(name string) string { return "fencedkv:{" + name + "}:queue" })
	s.forget = func(t testing.TB, _ string) {
		t.Helper()
		// What a primary that was not replicated in time leaves after a failover.
		srv.Restart(t)
	}
	return s
}

func startRedlock(t testing.TB) *service {
	all := servers.StartRedisServers(t, 3, nil)
	var direct []*redis.Client
	for _, srv := range all {
		direct = append(direct, redisClient(t, srv.Addr()))
	}
	s := three(func() client {
		var clients []redislock.Client
		for _, srv := range all {
			clients = append(clients, redisClient(t, srv.Addr()))
		}
		l, err := redislock.NewRedlock(clients, &redislock.RedlockOptions{TTL: ttl, NodeTimeout: patience})
		return closed(t, l, err)
	})
	for _, srv := range all {
		s.servers = append(s.servers, srv)
	}
	s.waiting = redisWaiters(direct, func(name string) string { return "fencedkv:redlock:{" + name + "}:queue" })
	s.forget = func(t testing.TB, _ string) {
		t.Helper()
		for _, srv := range all[:2] {
			srv.Restart(t)
		}
	}
	return s
}

// redisWaiters finds ids in the queue. A waiter has no number: it could only guess
// that of the holder or the next one.
func redisWaiters(direct []*redis.Client, queue func(name string) string) func(testing.TB, string) []fence.Token {
	return func(t testing.TB, name string) (all []fence.Token) {
		t.Helper()
		for _, c := range direct {
			ids, err := c.ZRange(t.Context(), queue(name), 0, -1).Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				all = append(all, fence.Token{Holder: id})
			}
		}
		return all
	}
}

func startEtcd(t testing.TB) *service {
	srv := servers.StartEtcd(t, nil)
	direct, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + srv.Addr()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { direct.Close() })
	s := three(func() client {
		l, err := etcdlock.Dial("etcd://"+srv.Addr(), &etcdlock.Options{TTL: ttl, RequestTimeout: patience})
		return closed(t, l, err)
	})
	s.servers = []servers.Server{srv}
	queue := func(name string) string { return etcdlock.DefaultPrefix + "/" + name + "/" }
	s.waiting = func(t testing.TB, name string) (all []fence.Token) {
		t.Helper()
		resp, err := direct.Get(t.Context(), queue(name), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range resp.Kvs[min(1, len(resp.Kvs)):] {
			all = append(all, fence.Token{Seq: uint64(kv.CreateRevision), Holder: string(kv.Value)})
		}
		return all
	}
	s.forget = func(t testing.TB, name string) {
		t.Helper()
		if _, err := direct.Delete(t.Context(), queue(name), clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func startZooKeeper(t testing.TB) *service { return startZooKeeperWith(t, false) }
func startZxids(t testing.TB) *service     { return startZooKeeperWith(t, true) }

func startZooKeeperWith(t testing.TB, useZxid bool) *service {
	srv := servers.StartZooKeeper(t, &servers.ZooKeeperOptions{Config: []string{"maxSessionTimeout=60000"}})
	direct, events, err := zk.Connect([]string{srv.Addr()}, ttl, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		direct.Close()
		for range events {
		}
	})
	s := three(func() client {
		l, err := zklock.Dial("zk://"+srv.Addr()+"/locks", &zklock.Options{SessionTimeout: ttl, RequestTimeout: patience, UseZxid: useZxid})
		return closed(t, l, err)
	})
	s.servers = []servers.Server{srv}
	entries := func(t testing.TB, name string) []string {
		t.Helper()
		children, _, err := direct.Children("/locks/" + name)
		if err != nil {
			t.Fatal(err)
		}
		number := func(child string) string { return child[strings.LastIndexByte(child, '-'):] }
		slices.SortFunc(children, func(a, b string) int { return strings.Compare(number(a), number(b)) })
		return children
	}
	s.waiting = func(t testing.TB, name string) (all []fence.Token) {
		t.Helper()
		for _, child := range entries(t, name)[1:] {
			data, stat, err := direct.Get("/locks/" + name + "/" + child)
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.ParseUint(child[strings.LastIndexByte(child, '-')+1:], 10, 31)
			if err != nil {
				t.Fatal(err)
			}
			if n++; useZxid {
				n = uint64(stat.Czxid)
			}
			all = append(all, fence.Token{Seq: n, Holder: string(data)})
		}
		return all
	}
	s.forget = func(t testing.TB, name string) {
		t.Helper()
		for _, child := range entries(t, name) {
			if err := direct.Delete("/locks/"+name+"/"+child, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}
