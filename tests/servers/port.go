package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
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
		t.Fatal(err)
	}
	return port
}

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
		return port, ln.Close()
	}
	return 0, fmt.Errorf("servers: no free loopback port in %d tries: %w", tries, last)
}
