package deployments_test

import (
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

const (
	long  = 20 * time.Second // outlives an election
	short = 3 * time.Second
)

// deployment is a service of several servers, one of which leads.
type deployment struct {
	// addrs are all servers that clients connect to.
	addrs []string
	// connect makes a client of its own, closed at the end, whose locks outlive
	// it by ttl.
	connect func(t testing.TB, n network, ttl time.Duration) locks.Locker
	// entries are what the service keeps of attempts at a lock that hold it or
	// wait: none, when it is free and nobody wants it.
	entries func(t testing.TB, name string) []string
	// killLeader ends, by SIGKILL, the server that leads or has the locks.
	killLeader func(t testing.TB)
	// name makes a lock name that the server which killLeader ends is
	// responsible for.
	name func(t testing.TB, name string) string
}

func sameName(_ testing.TB, name string) string { return name }
