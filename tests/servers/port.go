package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// FreePort is a loopback TCP port that nobody listens on now, below the range
// from which the systems take ports for outgoing connections: a client that
// keeps dialling a dead server's port in that range may end up connected to
// itself, and the server then finds its port taken.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatalf("servers: %v", err)
	}
	return port
}

// handedOut has the ports given away by this process: nobody may listen on one
// of them yet, or just now.
var handedOut sync.Map

func freePort() (int, error) {
	const low, high, tries = 16000, 32000, 200
	var last error
	for range tries {
		port := low + rand.IntN(high-low)
		ln, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		err = ln.Close()
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		return port, err
	}
	return 0, fmt.Errorf("no free loopback port in %d tries: %w", tries, last)
}
