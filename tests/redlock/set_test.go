package redlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// of is the clients of some servers of several sets.
func of(clients ...*redis.Client) (all []redislock.Client) {
	for _, c := range clients {
		all = append(all, c)
	}
	return all
}

func TestServerListedTwiceIsRefused(t *testing.T) {
	t.Parallel()
	s := startSet(t, 2, false)
	again := newClient(t, s.servers[0].Addr())
	otherBase := redis.NewClient(&redis.Options{Addr: s.servers[0].Addr(), DB: 1, ContextTimeoutEnabled: true})
	defer otherBase.Close()
	for what, twice := range map[string]*redis.Client{"another client": again, "another database": otherBase} {
		l := newRedlock(t, of(s.clients[0], s.clients[1], twice), patient(space()))
		for range 2 {
			_, err := l.Acquire(bounded.Context(t), "a")
			if !errors.Is(err, locks.ErrBadOption) || !strings.Contains(err.Error(), "servers 1 and 3 are one") {
				t.Errorf("%s of a server: %v, want ErrBadOption that names servers 1 and 3", what, err)
			}
		}
	}
}

// One that is away at first is looked at when it comes.
func TestServerListedTwiceIsFoundLater(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, true)
	prefix := space()
	bounded.Release(t, bounded.Acquire(t, s.redlock(t, patient(prefix)), "a"))
	network := newRoute(t, s.servers[2].Addr())
	l := newRedlock(t, of(s.clients[0], s.clients[1], newClient(t, network.addr())), patient(prefix))
	network.to("127.0.0.1:1")
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	network.to(s.servers[0].Addr())
	bounded.Eventually(t, "it is refused", func() bool {
		lease, err := l.Acquire(bounded.Context(t), "a")
		if err == nil {
			_ = lease.Release(t.Context())
		}
		return errors.Is(err, locks.ErrBadOption)
	})
}

func TestClientsOfOneSetHaveOneLineage(t *testing.T) {
	t.Parallel()
	for range 5 {
		s := startSet(t, 3, false)
		prefix := space()
		const clients = 6
		lineages := make([]string, clients)
		var all sync.WaitGroup
		for i := range clients { // they come to new servers all at once
			l := s.redlock(t, &redislock.RedlockOptions{Prefix: prefix, TTL: time.Minute, NodeTimeout: 15 * time.Second})
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), bounded.Patience)
				defer cancel()
				lease, err := l.Acquire(ctx, "a")
				if err != nil {
					t.Error(err)
					return
				}
				lineages[i] = lease.Token().Lineage
				if err := lease.Release(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for i, lineage := range lineages {
			if lineage != lineages[0] || !strings.HasPrefix(lineage, "redlock:") || !strings.Contains(lineage, "/3:") {
				t.Errorf("client %d has the lineage %q, and client 0 %q", i, lineage, lineages[0])
			}
		}
	}
}

// Several bids and none with a majority, as clients leave them that come at once.
func TestServersThatWereBidForAgree(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	for i, bid := range []string{"M/3", "B/3", "Z/3"} {
		s.clients[i].Set(t.Context(), prefix+":redlock:bid", bid, 0)
	}
	s.servers[0].Pause(t)
	o := patient(prefix)
	o.NodeTimeout = 3 * time.Second
	l := s.redlock(t, o)
	if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("TryAcquire while one of them is away: %v, want ErrUnreachable", err)
	}
	s.servers[0].Resume(t)
	lease := bounded.Acquire(t, l, "a")
	if got := lease.Token().Lineage; !strings.HasPrefix(got, "redlock:B/3:") {
		t.Errorf("the lineage is %q, want that of the smallest bid", got)
	}
	bounded.Release(t, lease)
}

func TestServersOfTwoSetsAreNoSet(t *testing.T) {
	t.Parallel()
	one, two := startSet(t, 3, false), startSet(t, 3, false)
	prefix := space()
	for _, s := range []*set{one, two} {
		bounded.Release(t, bounded.Acquire(t, s.redlock(t, patient(prefix)), "a"))
	}
	fresh := startSet(t, 2, false)
	for what, clients := range map[string][]redislock.Client{
		"a server of each and a new one":      of(one.clients[0], two.clients[0], fresh.clients[0]),
		"one server of a set and two new":     of(one.clients[0], fresh.clients[0], fresh.clients[1]),
		"all servers of a set and two others": of(one.clients[0], one.clients[1], one.clients[2], fresh.clients[0], fresh.clients[1]),
	} {
		l := newRedlock(t, clients, patient(prefix))
		if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrBadOption) {
			t.Errorf("%s: %v, want ErrBadOption", what, err)
		}
	}
	// The stranger is not used, and the majority is enough.
	l := newRedlock(t, of(one.clients[0], one.clients[1], two.clients[0]), patient(prefix))
	lease := bounded.Acquire(t, l, "mixed")
	if got := two.get(t, 0, keyOf(prefix, "mixed")+"lock"); got != "" {
		t.Errorf("a server of another set has the lock of %q", got)
	}
	bounded.Release(t, lease)
}

// What a server has lost with its data may still be held: it grants nothing for
// longer than that can last.
func TestServerThatHasForgottenRests(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, true)
	prefix := space()
	l := s.redlock(t, patient(prefix))
	lease := bounded.Acquire(t, l, "a")
	s.servers[0].StartEmpty(t)
	s.servers[1].Kill(t)
	for what, l := range map[string]*redislock.Redlock{"the same client": l, "another client": s.redlock(t, patient(prefix))} {
		_, err := l.TryAcquire(bounded.Context(t), "b")
		if !errors.Is(err, locks.ErrUnreachable) {
			t.Errorf("%s: TryAcquire with a server that has forgotten and one that is down: %v, want ErrUnreachable", what, err)
		}
	}
	if rest := s.clients[0].PTTL(t.Context(), prefix+":redlock:rest").Val(); rest < 4*time.Minute {
		t.Errorf("the server rests for %v more, want the lease time of 5 minutes and the clocks' difference", rest)
	}
	// An operator who knows that nothing is held may end it.
	s.clients[0].Del(t.Context(), prefix+":redlock:rest")
	bounded.Release(t, bounded.Acquire(t, l, "b"))
	s.servers[1].Start(t)
	_ = lease.Release(t.Context())
}

func TestOneServerIsASet(t *testing.T) {
	t.Parallel()
	l := newRedlock(t, of(newClient(t, servers.SharedRedis(t))), patient(space()))
	lease := bounded.Acquire(t, l, "a")
	if got := lease.Token().Lineage; !strings.Contains(got, "/1:") {
		t.Errorf("the lineage is %q, want one of a set of one", got)
	}
	bounded.Release(t, lease)
}
