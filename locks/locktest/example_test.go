package locktest_test

import (
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// The test of an adapter: how to get a Locker, and what can be done to the
// service. Each ability that is offered lets the kit check more.
func ExampleRun() {
	// func TestKit(t *testing.T) { locktest.Run(t, newService) }

	newService := func(t *testing.T) *locktest.Service {
		// With a real service: a namespace of a shared server, or a server of
		// its own if locktest.NeedsOwnServer(t).
		server := memlock.NewServer(nil)
		return &locktest.Service{
			TTL: time.Second,
			New: func(t testing.TB, c locktest.Config) locks.Locker {
				if c.TTL == 0 {
					c.TTL = time.Second
				}
				l, err := server.NewLocker(&memlock.Options{TTL: c.TTL, MaxHold: c.MaxHold})
				if err != nil {
					t.Fatal(err)
				}
				return l
			},
			Entries: func(t testing.TB, name string) int { return len(server.Entries(name)) },
			Expire:  func(t testing.TB, name string) { server.Expire(name) },
		}
	}
	_ = newService
}
