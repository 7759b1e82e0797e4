// Package wired puts a network that can be cut and a counter of requests between
// Lockers and their server, and gives the kit what it needs of both.
package wired

import (
	"sync"
	"testing"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// Wire is the way of one Locker to its server: client, Network, Counter, server.
type Wire struct {
	Network *proxy.Proxy
	Counter *proxy.Counter
}

// New puts a network before the counter.
func New(t testing.TB, counter *proxy.Counter) Wire {
	t.Helper()
	return Wire{proxy.New(t, counter.Addr()), counter}
}

// Set is the wires of all Lockers of one Service of the kit.
type Set struct {
	mu    sync.Mutex
	wires map[locks.Locker]Wire
}

// Add notes the wire of a Locker that Service.New has made.
func (s *Set) Add(l locks.Locker, w Wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wires == nil {
		s.wires = make(map[locks.Locker]Wire)
	}
	s.wires[l] = w
}

func (s *Set) of(t testing.TB, l locks.Locker) Wire {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.wires[l]
	if !ok {
		t.Fatal("the Locker is not one of New")
	}
	return w
}

// Equip sets what of the Service happens on the wires. take is the counter's
// name of the request that takes a lock.
func (s *Set) Equip(service *locktest.Service, take string) {
	service.Cut = func(t testing.TB, l locks.Locker) func() {
		t.Helper()
		network := s.of(t, l).Network
		network.BlackHole(t, proxy.Both)
		return sync.OnceFunc(func() { network.Heal(t) })
	}
	service.LoseReply = func(t testing.TB, l locks.Locker) {
		t.Helper()
		s.of(t, l).Counter.DropReply(take)
	}
	service.Requests = func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, w := range s.wires {
			n += len(w.Counter.Requests())
		}
		return n
	}
}

// EquipServer sets what of the Service happens to a server that nobody shares.
func EquipServer(service *locktest.Service, srv servers.Server) {
	service.Restart = srv.Restart
	service.Pause = func(t testing.TB) func() {
		srv.Pause(t)
		return sync.OnceFunc(func() { srv.Resume(t) })
	}
}

// Made keeps an adapter's nil pointer from becoming a Locker that is not nil.
func Made[L locks.Locker](l L, err error) (locks.Locker, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}
