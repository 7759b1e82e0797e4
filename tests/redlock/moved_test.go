package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// moved is a Redlock whose way to each server can be changed.
type moved struct {
	*set
	prefix string
	routes []*route
	l      *redislock.Redlock
}

func startMoved(t *testing.T) *moved {
	t.Helper()
	m := &moved{set: startSet(t, 3, false), prefix: space()}
	var clients []redislock.Client
	for _, srv := range m.servers {
		r := newRoute(t, srv.Addr())
		m.routes, clients = append(m.routes, r), append(clients, newClient(t, r.addr()))
	}
	m.l = newRedlock(t, clients, &redislock.RedlockOptions{Prefix: m.prefix, TTL: 8 * time.Second, NodeTimeout: 2 * time.Second})
	for i := range m.servers { // each has been met
		bounded.Eventually(t, "all servers are used", func() bool {
			bounded.Release(t, bounded.Acquire(t, m.l, "warm"))
			return m.get(t, i, keyOf(m.prefix, "warm")+"count") != ""
		})
	}
	return m
}

// One server is no majority, however many addresses lead to it.
func TestServerThatIsReachedTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	m := startMoved(t)
	for _, client := range m.clients[1:] {
		client.Set(t.Context(), keyOf(m.prefix, "a")+"lock", "another", 0)
	}
	m.routes[2].to(m.servers[0].Addr())
	for range 3 {
		lease, err := m.l.TryAcquire(bounded.Context(t), "a")
		if err == nil {
			t.Fatalf("a server that is reached twice gave %v", lease.Token())
		}
		if errors.Is(err, locks.ErrBadOption) {
			return
		}
	}
	t.Error("that servers 1 and 3 are one is not found out")
}

func TestRenewalOfAServerThatIsReachedTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	m := startMoved(t)
	lease := bounded.Acquire(t, m.l, "a")
	token := lease.Token()
	bounded.Eventually(t, "all servers have the lock", func() bool {
		return m.all(func(i int) bool { return m.get(t, i, keyOf(m.prefix, "a")+"lock") == token.Holder })
	})
	m.routes[1].to("127.0.0.1:1")
	m.routes[2].to(m.servers[0].Addr())
	deadline := lease.Deadline()
	bounded.Eventually(t, "the lease ends, or is renewed for longer", func() bool {
		return lease.Context().Err() != nil || lease.Deadline().After(deadline.Add(4*time.Second))
	})
	if err := context.Cause(lease.Context()); !errors.Is(err, locks.ErrLost) {
		t.Errorf("the lease ended with %v, want ErrLost", err)
	}
	_ = lease.Release(t.Context())
}

func TestAnswerOfAServerThatIsReachedTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	m := startMoved(t)
	lease := bounded.Acquire(t, m.l, "a")
	m.routes[1].to("127.0.0.1:1")
	m.routes[2].to(m.servers[0].Addr())
	if err := m.l.Verify(bounded.Context(t), "a", lease.Token()); !errors.Is(err, fence.ErrNoAnswer) {
		t.Errorf("Verify: %v, want ErrNoAnswer", err)
	}
	_ = lease.Release(t.Context())
}

// Addresses may change hands.
func TestServersMayChangeAddresses(t *testing.T) {
	t.Parallel()
	m := startMoved(t)
	lease := bounded.Acquire(t, m.l, "a")
	for i, r := range m.routes {
		r.to(m.servers[(i+1)%3].Addr())
	}
	before := lease.Deadline()
	bounded.Eventually(t, "a renewal", func() bool { return lease.Deadline().After(before) || lease.Context().Err() != nil })
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Acquire(t, m.l, "b"))
}

// What a server says of itself when it is met is not for ever.
func TestServerThatChangesSetsIsNotUsed(t *testing.T) {
	t.Parallel()
	m := startMoved(t)
	for _, client := range m.clients[:2] {
		client.Set(t.Context(), keyOf(m.prefix, "a")+"lock", "another", 0)
	}
	m.clients[2].Set(t.Context(), m.prefix+":redlock:set", "ANOTHER/3", 0)
	if lease, err := m.l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("TryAcquire: %v, %v, want ErrHeld", lease, err)
	}
	if got := m.get(t, 2, keyOf(m.prefix, "a")+"count"); got != "" {
		t.Errorf("the server of another set has given the number %q", got)
	}
}
