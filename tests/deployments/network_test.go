package deployments_test

import (
	"context"
	"net"
	"testing"

	"github.com/fencedkv/fencedkv/tests/proxy"
)

// network is the way of one client to every server of a deployment.
type network map[string]*proxy.Proxy

func newNetwork(t testing.TB, addrs []string) network {
	t.Helper()
	n := make(network)
	for _, addr := range addrs {
		n[addr] = proxy.New(t, addr)
	}
	return n
}

// cut drops everything silently, both ways.
func (n network) cut(t testing.TB) {
	t.Helper()
	for _, p := range n {
		p.BlackHole(t, proxy.Both)
	}
}

func (n network) heal(t testing.TB) {
	t.Helper()
	for _, p := range n {
		p.Heal(t)
	}
}

// via are the addresses for a client to use.
func (n network) via(addrs []string) []string {
	var all []string
	for _, addr := range addrs {
		all = append(all, n.to(addr))
	}
	return all
}

// to is where a client that goes to a server connects; a nil network is the
// straight way.
func (n network) to(addr string) string {
	if p, ok := n[addr]; ok {
		return p.Addr()
	}
	return addr
}

// dial is for a client that learns addresses from the servers.
func (n network) dial(ctx context.Context, kind, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, kind, n.to(addr))
}
