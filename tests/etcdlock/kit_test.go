package etcdlock_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestKit(t *testing.T) { locktest.Run(t, service) }

func service(t *testing.T) *locktest.Service {
	var own *servers.Etcd
	addr := ""
	if locktest.NeedsOwnServer(t) {
		own = servers.StartEtcd(t, nil)
		addr = own.Addr()
	} else {
		addr = servers.SharedEtcd(t)
	}
	s := newSite(t, addr)
	var (
		mu       sync.Mutex
		lockers  = make(map[locks.Locker]*counted)
		counters []*proxy.Counter
	)
	find := func(t testing.TB, l locks.Locker) *counted {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if lockers[l] == nil {
			t.Fatal("the Locker is not one of New")
		}
		return lockers[l]
	}

	service := &locktest.Service{
		TTL: 2 * time.Second, // a busy machine answers late
		New: func(t testing.TB, c locktest.Config) locks.Locker {
			opts := &etcdlock.Options{Prefix: s.prefix, TTL: 2 * time.Second, MaxHold: c.MaxHold}
			if c.TTL != 0 {
				opts.TTL = c.TTL
			}
			l := s.counted(t, opts)
			mu.Lock()
			defer mu.Unlock()
			lockers[l.Locker] = l
			counters = append(counters, l.counter)
			return l.Locker
		},
		Entries:     func(t testing.TB, name string) int { return len(s.entries(t, name)) },
		DeleteEntry: func(t testing.TB, name string) { s.delete(t, s.holder(t, name).key) },
		ReplaceEntry: func(t testing.TB, name string) {
			// The same key with another create revision and without a lease:
			// what a name alone would take for the holder's own.
			h := s.holder(t, name)
			s.delete(t, h.key)
			if _, err := s.direct.Put(t.Context(), h.key, "somebody else"); err != nil {
				t.Fatal(err)
			}
		},
		DeleteWaiters: func(t testing.TB, name string) {
			for _, e := range s.entries(t, name)[1:] {
				s.delete(t, e.key)
			}
		},
		Revoke: func(t testing.TB, name string) { s.revoke(t, s.holder(t, name)) },
		// Expire stays nil: etcd cannot be made to end a lease's time, and
		// Revoke is another event. The kit cuts the holder off instead.
		Cut: func(t testing.TB, l locks.Locker) func() {
			network := find(t, l).network
			network.BlackHole(t, proxy.Both)
			return sync.OnceFunc(func() { network.Heal(t) })
		},
		LoseReply: func(t testing.TB, l locks.Locker) { find(t, l).counter.DropReply(pathTxn) },
		Requests: func() int {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for _, c := range counters {
				n += len(c.Requests())
			}
			return n
		},
		BadOptions: map[string]func() (locks.Locker, error){
			"no client": func() (locks.Locker, error) {
				return refused(etcdlock.New(nil, nil))
			},
			"an empty address": func() (locks.Locker, error) {
				return refused(etcdlock.Dial("", nil))
			},
			"a lease time of half a second": func() (locks.Locker, error) {
				return refused(etcdlock.Dial("etcd://"+addr, &etcdlock.Options{TTL: 500 * time.Millisecond}))
			},
			"a lease time with a fraction": func() (locks.Locker, error) {
				return refused(etcdlock.Dial("etcd://"+addr, &etcdlock.Options{TTL: 2500 * time.Millisecond}))
			},
			"a negative lease time": func() (locks.Locker, error) {
				return refused(etcdlock.Dial("etcd://"+addr, &etcdlock.Options{TTL: -time.Second}))
			},
		},
		Secret: func(t testing.TB, password string) error {
			// A port that was closed again might be taken by another server.
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			l, err := etcdlock.Dial("etcd://user:"+password+"@"+silent.Addr().String(),
				&etcdlock.Options{TTL: time.Second, RequestTimeout: 200 * time.Millisecond})
			if err == nil {
				closeLocker(t, l)
			}
			return err
		},
	}
	if own != nil {
		service.Restart = func(t testing.TB) { own.Restart(t) }
		service.Pause = func(t testing.TB) func() {
			own.Pause(t)
			return sync.OnceFunc(func() { own.Resume(t) })
		}
	}
	return service
}

// refused keeps a nil *etcdlock.Locker from becoming a Locker that is not nil.
func refused(l *etcdlock.Locker, err error) (locks.Locker, error) {
	if l == nil {
		return nil, err
	}
	return l, err
}

func (s *site) revoke(t testing.TB, e entry) {
	t.Helper()
	if _, err := s.direct.Revoke(t.Context(), e.lease); err != nil {
		t.Fatalf("revoke: %v", err)
	}
}
