package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/adapters/zklock"
)

// What the server takes for an attack, such as a request that is too long, it
// answers by hanging up, each time again.
func TestAServerThatGreetsAndHangsUpIsNotAskedWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := zklock.NewHosts(1)
		start := time.Now()
		const n = 30
		for range n {
			time.Sleep(h.Pause())
			h.Connected()
		}
		if took := time.Since(start); took < n/3*time.Second {
			t.Errorf("%d connections in %v", n, took)
		}
	})
}

func TestABrokenConnectionIsMadeAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, servers := range []int{1, 3} {
			h := zklock.NewHosts(servers)
			for range 20 { // as an outage
				h.Pause()
			}
			h.Connected()
			time.Sleep(time.Second)
			for i := range servers {
				if d := h.Pause(); d != 0 {
					t.Errorf("%d servers: connection %d waits %v, want 0", servers, i, d)
				}
			}
			if d := h.Pause(); d <= 0 || d > 20*time.Millisecond {
				t.Errorf("%d servers: the second round waits %v, want up to 20ms", servers, d)
			}
		}
	})
}
