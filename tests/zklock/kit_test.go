package zklock_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/internal/wired"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// Sessions that live longer than the default allows, for the subtests that
// must tell a removed entry from one that ran out.
var kitServer = &servers.ZooKeeperOptions{Config: []string{"maxSessionTimeout=60000", "maxClientCnxns=0"}}

// A lease lives on through a pause of the server of half of this.
const kitTTL = 1500 * time.Millisecond

func TestKit(t *testing.T) {
	srv := servers.StartZooKeeper(t, kitServer)
	locktest.Run(t, func(t *testing.T) *locktest.Service {
		if locktest.NeedsOwnServer(t) {
			own := servers.StartZooKeeper(t, kitServer)
			service := newService(newSite(t, own.Addr()))
			wired.EquipServer(service, own)
			return service
		}
		return newService(newSite(t, srv.Addr()))
	})
}

func newService(s *site) *locktest.Service {
	var wires wired.Set
	service := &locktest.Service{
		TTL:    kitTTL,
		MaxTTL: 60 * time.Second,
		New: func(t testing.TB, c locktest.Config) locks.Locker {
			opts := s.options()
			opts.SessionTimeout = kitTTL
			if c.TTL != 0 {
				opts.SessionTimeout = c.TTL.Truncate(time.Millisecond)
			}
			opts.MaxHold = c.MaxHold
			l := s.open(t, opts)
			wires.Add(l.Locker, l.Wire)
			return l.Locker
		},
		Entries:     func(t testing.TB, name string) int { return len(s.entries(t, name)) },
		DeleteEntry: func(t testing.TB, name string) { s.delete(t, s.holder(t, name).path) },
		ReplaceEntry: func(t testing.TB, name string) {
			// First the other's entry, so that the lock is never free. It is
			// of another session, and has the holder's place in the queue.
			h := s.holder(t, name)
			id := "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			s.create(t, s.node(name)+"/_c_"+id+h.seq, zk.FlagEphemeral)
			s.delete(t, h.path)
		},
		DeleteWaiters: func(t testing.TB, name string) {
			for _, e := range s.entries(t, name)[1:] {
				s.delete(t, e.path)
			}
		},
		Revoke: func(t testing.TB, name string) { s.closeSession(t, s.holder(t, name)) },
		// Expire stays nil: a session cannot be made to time out, and Revoke is
		// another event. The kit cuts the holder off instead.
		BadOptions: map[string]func() (locks.Locker, error){
			"an empty address": func() (locks.Locker, error) {
				return wired.Made(zklock.Dial("", nil))
			},
			"a session timeout that rounds to nothing": func() (locks.Locker, error) {
				return wired.Made(zklock.Dial(s.addr, &zklock.Options{SessionTimeout: time.Microsecond}))
			},
			"a session timeout below the server's least": func() (locks.Locker, error) {
				return wired.Made(zklock.Dial(s.addr, &zklock.Options{SessionTimeout: 399 * time.Millisecond}))
			},
			"a session timeout above the server's longest": func() (locks.Locker, error) {
				return wired.Made(zklock.Dial(s.addr, &zklock.Options{SessionTimeout: time.Hour}))
			},
			"the root of all as root": func() (locks.Locker, error) {
				return wired.Made(zklock.Dial(s.addr, &zklock.Options{Root: "/"}))
			},
		},
		Secret: func(t testing.TB, password string) error {
			// Below the range from which the subtests beside this one listen.
			nobody := local(servers.FreePort(t))
			address := "zk://" + url.UserPassword("user", password).String() + "@" + nobody
			l, err := zklock.Dial(address, &zklock.Options{SessionTimeout: time.Second})
			if err == nil {
				bounded.Close(t, l)
			}
			return err
		},
	}
	wires.Equip(service, "create")
	return service
}
