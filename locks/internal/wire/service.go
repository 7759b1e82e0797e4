package wire

import (
	"sync"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// Wrap changes what a Locker is made of, so that a test can break it. Nil
// fields change nothing.
type Wrap struct {
	Backend func(*Net, memlock.Backend) memlock.Backend
	Options func(*memlock.Options)
	Locker  func(locks.Locker) locks.Locker
}

// Service makes the Service of a new Net, whose Lockers are changed by w.
func Service(ttl time.Duration, w Wrap) *locktest.Service {
	n := NewNet()
	var mu sync.Mutex
	links := make(map[locks.Locker]*Link)
	link := func(l locks.Locker) *Link {
		mu.Lock()
		defer mu.Unlock()
		return links[l]
	}
	return &locktest.Service{
		TTL: ttl,
		New: func(t testing.TB, c locktest.Config) locks.Locker {
			o := &memlock.Options{TTL: c.TTL, MaxHold: c.MaxHold}
			if o.TTL == 0 {
				o.TTL = ttl
			}
			if w.Options != nil {
				w.Options(o)
			}
			own := &Link{net: n}
			var backend memlock.Backend = own
			if w.Backend != nil {
				backend = w.Backend(n, backend)
			}
			m, err := memlock.NewLocker(backend, o)
			if err != nil {
				t.Fatal(err)
			}
			var l locks.Locker = m
			if w.Locker != nil {
				l = w.Locker(l)
			}
			mu.Lock()
			defer mu.Unlock()
			links[l] = own
			return l
		},
		Entries: func(_ testing.TB, name string) int { return len(n.Server.Entries(name)) },
		DeleteEntry: func(t testing.TB, name string) {
			if !n.Server.Expire(name) {
				t.Errorf("lock %q has no holder to delete", name)
			}
		},
		ReplaceEntry: func(t testing.TB, name string) {
			n.Server.Expire(name)
			if _, err := n.Server.Take(t.Context(), memlock.Attempt{Name: name, ID: locks.NewHolder(), TTL: time.Hour}); err != nil {
				t.Error(err)
			}
		},
		DeleteWaiters: func(t testing.TB, name string) {
			for _, e := range n.Server.Entries(name)[1:] {
				if err := n.Server.Release(t.Context(), name, e.ID); err != nil {
					t.Error(err)
				}
			}
		},
		// What serves the Server starts again; the Server keeps its data.
		Restart: func(t testing.TB) {
			open := n.paused.shut()
			n.Break()
			open()
		},
		Pause:     func(testing.TB) func() { return n.paused.shut() },
		Cut:       func(_ testing.TB, l locks.Locker) func() { return link(l).cut.shut() },
		LoseReply: func(_ testing.TB, l locks.Locker) { link(l).lose.Store(true) },
		Requests:  func() int { return int(n.requests.Load()) },
		Expire: func(t testing.TB, name string) {
			if !n.Server.Expire(name) {
				t.Errorf("lock %q has no holder to expire", name)
			}
		},
		BadOptions: map[string]func() (locks.Locker, error){
			"ttl too short":    badOptions(memlock.Options{TTL: time.Microsecond}),
			"ttl negative":     badOptions(memlock.Options{TTL: -time.Second}),
			"negative maxhold": badOptions(memlock.Options{MaxHold: -1}),
		},
	}
}

func badOptions(o memlock.Options) func() (locks.Locker, error) {
	return func() (locks.Locker, error) {
		l, err := memlock.New(&o)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
}
