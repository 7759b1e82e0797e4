package proxy

import (
	"sync"
	"testing"
	"time"
)

// Direction says which way a fault works.
type Direction string

const (
	Both       Direction = "both"
	Upstream   Direction = "upstream"   // from the client to the server
	Downstream Direction = "downstream" // from the server to the client
)

// Proxy is a network path to a server that can be made bad. All methods may be
// called concurrently, but those that take t only from the test's goroutine.
type Proxy struct {
	relay    *relay
	up, down *path
}

// New puts a proxy before the server at addr (host:port) until the test ends.
func New(t testing.TB, addr string) *Proxy {
	t.Helper()
	p := &Proxy{up: newPath(), down: newPath()}
	p.relay = newRelay(t, addr, p.serve)
	return p
}

// Addr is host:port for clients.
func (p *Proxy) Addr() string { return p.relay.addr() }

// BlackHole stops all bytes that are sent in a direction after it returns, on
// connections that are open and on new ones, until Heal. Nothing is closed and
// nobody is told: connecting works, and the end of a connection does not get
// through either. What is held is delivered at Heal, even if its sender is
// gone by then, as by TCP's retransmission.
func (p *Proxy) BlackHole(t testing.TB, d Direction) {
	t.Helper()
	for _, way := range p.ways(t, d) {
		_, delay, _ := way.state()
		way.set(true, delay)
	}
}

// Latency delays what is on its way to the client by d, until Heal.
func (p *Proxy) Latency(t testing.TB, d time.Duration) {
	t.Helper()
	held, _, _ := p.down.state()
	p.down.set(held, d)
}

// Heal ends black holes and latency.
func (p *Proxy) Heal(t testing.TB) {
	t.Helper()
	for _, way := range p.ways(t, Both) {
		way.set(false, 0)
	}
}

// Reset resets all connections that are open: the client sees ECONNRESET, the
// server, behind what is still held, an ordinary end. New connections are
// accepted.
func (p *Proxy) Reset(t testing.TB) {
	t.Helper()
	p.relay.each(func(l *link) { reset(l.client) })
}

func (p *Proxy) ways(t testing.TB, d Direction) []*path {
	t.Helper()
	switch d {
	case Both:
		return []*path{p.up, p.down}
	case Upstream:
		return []*path{p.up}
	case Downstream:
		return []*path{p.down}
	}
	t.Fatalf("proxy: no direction %q", d)
	return nil
}

func (p *Proxy) serve(l *link, end <-chan struct{}) {
	var wg sync.WaitGroup
	wg.Go(func() {
		p.up.carry(l.client, l.server, end)
		_ = l.server.CloseWrite() // it may still answer
	})
	wg.Go(func() {
		p.down.carry(l.server, l.client, end)
		_ = l.client.Close()
	})
	wg.Wait()
}
