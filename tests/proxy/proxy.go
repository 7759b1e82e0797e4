package proxy

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// Direction says which way a fault works.
type Direction string

const (
	Both       Direction = "both"
	Upstream   Direction = "upstream"   // from the client to the server
	Downstream Direction = "downstream" // from the server to the client
)

// Proxy is a network path to a server that can be made bad. Its methods are
// for one goroutine at a time.
type Proxy struct {
	relay *relay
	toxic *toxiproxy.Proxy
}

// New puts a proxy before the server at addr (host:port) until the test ends.
func New(t testing.TB, addr string) *Proxy {
	t.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &Proxy{toxic: toxiproxy.NewProxy(api, t.Name(), "127.0.0.1:0", addr)}
	if err := p.toxic.Start(); err != nil {
		t.Fatalf("proxy: %v", err)
	}
	t.Cleanup(func() {
		p.Heal(t) // what is held would keep its goroutine
		p.toxic.Stop()
	})
	// toxiproxy cannot reset a connection that is already open; a relay of our
	// own before it can.
	p.relay = newRelay(t, p.toxic.Listen, copyBytes)
	return p
}

// Addr is host:port for clients.
func (p *Proxy) Addr() string { return p.relay.addr() }

// BlackHole stops all bytes in a direction, of connections that are open and
// of new ones, from when it returns until Heal. Nothing is closed and nobody is told:
// connecting works, and the end of a connection does not get through either.
// What is held is delivered at Heal, even if its sender is gone by then, as
// TCP's retransmission would.
func (p *Proxy) BlackHole(t testing.TB, d Direction) {
	t.Helper()
	p.add(t, "fencedkv_hold", d, nil)
}

// Latency delays what the server answers by d, in whole milliseconds.
func (p *Proxy) Latency(t testing.TB, d time.Duration) {
	t.Helper()
	p.add(t, "latency", Downstream, map[string]int64{"latency": d.Milliseconds()})
}

// Heal ends all black holes and latencies.
func (p *Proxy) Heal(t testing.TB) {
	t.Helper()
	p.toxic.Toxics.ResetToxics(t.Context())
}

// Reset resets all connections that are open (the client sees ECONNRESET). New
// ones are accepted. In a black hole the server learns of it only at Heal.
func (p *Proxy) Reset(t testing.TB) {
	t.Helper()
	p.relay.resetAll()
}

// add puts a toxic into each direction of d, once.
func (p *Proxy) add(t testing.TB, kind string, d Direction, attributes any) {
	t.Helper()
	directions := []Direction{d}
	if d == Both {
		directions = []Direction{Upstream, Downstream}
	}
	for _, d := range directions {
		name := kind + "_" + string(d)
		if p.toxic.Toxics.GetToxic(name) != nil {
			t.Fatalf("proxy: %s is already there: Heal first", name)
		}
		spec, err := json.Marshal(map[string]any{
			"name": name, "type": kind, "stream": d, "toxicity": 1, "attributes": attributes,
		})
		if err != nil {
			t.Fatalf("proxy: %v", err)
		}
		if _, err := p.toxic.Toxics.AddToxicJson(strings.NewReader(string(spec))); err != nil {
			t.Fatalf("proxy: %s: %v", name, err)
		}
	}
}

func copyBytes(l *link) {
	l.both(
		func() error { _, err := io.Copy(l.server, l.client); return err },
		func() error { _, err := io.Copy(l.client, l.server); return err },
	)
}

// holdToxic lets nothing through and keeps it for later. toxiproxy's own
// timeout toxic drops the data and closes the connection when it is removed.
type holdToxic struct{}

func (*holdToxic) Pipe(stub *toxics.ToxicStub) { <-stub.Interrupt }

func init() { toxics.Register("fencedkv_hold", new(holdToxic)) }
