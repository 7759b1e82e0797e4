package etcdlock_test

import (
	"net"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/internal/wired"
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
	var wires wired.Set

	service := &locktest.Service{
		TTL: 2 * time.Second, // a busy machine answers late
		New: func(t testing.TB, c locktest.Config) locks.Locker {
			opts := &etcdlock.Options{Prefix: s.prefix, TTL: 2 * time.Second, MaxHold: c.MaxHold}
			if c.TTL != 0 {
				opts.TTL = c.TTL
			}
			l := s.counted(t, opts)
			wires.Add(l.Locker, l.Wire)
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
		BadOptions: map[string]func() (locks.Locker, error){
			"no client": func() (locks.Locker, error) {
				return wired.Made(etcdlock.New(nil, nil))
			},
			"an empty address": func() (locks.Locker, error) {
				return wired.Made(etcdlock.Dial("", nil))
			},
			"a lease time of half a second": func() (locks.Locker, error) {
				return wired.Made(etcdlock.Dial("etcd://"+addr, &etcdlock.Options{TTL: 500 * time.Millisecond}))
			},
			"a lease time with a fraction": func() (locks.Locker, error) {
				return wired.Made(etcdlock.Dial("etcd://"+addr, &etcdlock.Options{TTL: 2500 * time.Millisecond}))
			},
			"a negative lease time": func() (locks.Locker, error) {
				return wired.Made(etcdlock.Dial("etcd://"+addr, &etcdlock.Options{TTL: -time.Second}))
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
				bounded.Close(t, l)
			}
			return err
		},
	}
	wires.Equip(service, pathTxn)
	if own != nil {
		wired.EquipServer(service, own)
	}
	return service
}

func (s *site) revoke(t testing.TB, e entry) {
	t.Helper()
	if _, err := s.direct.Revoke(t.Context(), e.lease); err != nil {
		t.Fatalf("revoke: %v", err)
	}
}
