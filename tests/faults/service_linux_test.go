package faults_test

import (
	"context"
	"testing"

	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// adapter is a Locker's row of the matrix.
type adapter struct {
	name  string
	start func(testing.TB) *service
}

var adapters = []adapter{
	{redisName, startRedis},
	{redlockName, startRedlock},
	{etcdName, startEtcd},
	{zooKeeperName, startZooKeeper},
}

// service is what the parent knows of a lock service, and can do to it straight.
type service struct {
	access
	servers []servers.Server

	// count puts a counter of requests before a server.
	count func(t testing.TB, addr string) *proxy.Counter

	// The names of the requests that take a lock, take it when its turn has come
	// after a wait, renew it, and release it.
	take, turn, renew, release string

	// lineage reports whether a lost counter begins another one. falls reports
	// whether the numbers may then go back within one.
	lineage, falls bool

	// releaseUnsure reports that a release which the client library sends again, after
	// a lost reply, cannot be told from one of a lock that was lost, once somebody else
	// has it. Release then returns ErrLost although it has released.
	releaseUnsure bool

	// has reports whether the service keeps others out for the holder of a token.
	has func(ctx context.Context, name, holder string) (bool, error)

	// entries counts the holder's entry and those of waiters.
	entries func(ctx context.Context, name string) (int, error)

	// deleteLast deletes the entry that was made last, as an operator would.
	deleteLast func(ctx context.Context, name string) error

	// revokeLast ends the lease or session that this entry hangs on. Nil where
	// there is none.
	revokeLast func(ctx context.Context, name string) error

	// loseCounter makes the service forget where the numbers were.
	loseCounter func(t testing.TB, ctx context.Context, name string) error
}

// each is done to every server.
func (s *service) each(do func(servers.Server)) {
	for _, srv := range s.servers {
		do(srv)
	}
}
