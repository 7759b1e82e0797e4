package proxy

import (
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
)

// Counter is a proxy that reads the protocol and lists what the client asks.
// All methods may be called concurrently.
type Counter struct {
	relay *relay

	mu       sync.Mutex
	requests []string
	setup    []string
	trips    int
	open     int // requests without a reply
	conns    int
	faults   []*fault // not yet met by a request
	holds    []*fault // all that hold something, to release them at the end
}

// message is one request of a client, or one reply to it.
type message struct {
	id    int64 // what the reply has in common with its request
	name  string
	setup bool // introduces the connection or keeps it alive
}

// unit is a piece of a stream that is passed on as a whole.
type unit struct {
	raw      []byte
	messages []message
}

// protocol reads one connection. Requests and replies are read by two
// goroutines.
type protocol interface {
	request(r io.Reader) (unit, error)
	reply(r io.Reader) (unit, error)
}

func newCounter(t testing.TB, addr string, protocol func() protocol) *Counter {
	t.Helper()
	c := &Counter{}
	c.relay = newRelay(t, addr, func(l *link, _ <-chan struct{}) { c.serve(l, protocol()) })
	// Cleanups run last in, first out: what is still held must not keep the
	// relay from ending.
	t.Cleanup(c.releaseAll)
	return c
}

// Addr is host:port for clients.
func (c *Counter) Addr() string { return c.relay.addr() }

// Requests are the names of the requests since the last Reset, in the order in
// which they came: "EVALSHA" (Redis), "create" (ZooKeeper),
// "/etcdserverpb.KV/Txn" (etcd, one per message on a stream). Requests that
// set up a connection or keep it alive are in Setup.
func (c *Counter) Requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// Setup are the names of the requests that introduce a connection or keep it
// alive: HELLO, AUTH, SELECT and CLIENT of Redis; connect, ping, auth and
// setWatches of ZooKeeper; none of etcd.
func (c *Counter) Setup() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.setup)
}

// RoundTrips is how often, since the last Reset, a client asked something
// after having heard the replies so far: requests sent together, as by a
// Redis pipeline, are one round trip. Setup does not count.
func (c *Counter) RoundTrips() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trips
}

// Unanswered is how many requests have had no reply yet, Setup aside. Of a stream
// such as etcd's watch only the first reply counts.
func (c *Counter) Unanswered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// Connections is how many connections clients have made since the start; Reset
// does not change it.
func (c *Counter) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns
}

// Reset forgets what was counted. Connections and faults stay.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.setup, c.trips = nil, nil, 0
}

// serve moves one connection's units and applies the faults to them.
func (c *Counter) serve(l *link, p protocol) {
	conn := &counted{counter: c, link: l, waiting: make(map[int64]*fault),
		names: make(map[int64]string), last: make(map[string][]byte)}
	c.mu.Lock()
	c.conns++
	c.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() {
		if pump(l.client, l.server, p.request, conn.asked) != nil {
			l.close()
			return
		}
		_ = l.server.CloseWrite() // it may still answer
	})
	wg.Go(func() {
		_ = pump(l.server, l.client, p.reply, conn.answered)
		l.close()
	})
	wg.Wait()
	conn.ended()
}

// pump reads units and passes on those that seen lets through.
func pump(from io.Reader, to io.Writer, read func(io.Reader) (unit, error), seen func(*unit) bool) error {
	for {
		u, err := read(from)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !seen(&u) {
			return io.ErrClosedPipe
		}
		if _, err := to.Write(u.raw); err != nil {
			return err
		}
	}
}

// counted is one connection of a counter.
type counted struct {
	counter *Counter
	link    *link

	// Guarded by counter.mu.
	inTrip  bool              // asked and not answered yet
	waiting map[int64]*fault  // by the id of the request whose reply they await
	names   map[int64]string  // of the requests without a reply
	last    map[string][]byte // the last reply to each name
}

// asked notes the requests in u and tells whether u may go to the server.
func (conn *counted) asked(u *unit) bool {
	c := conn.counter
	var held []*fault
	c.mu.Lock()
	for _, m := range u.messages {
		if m.setup {
			c.setup = append(c.setup, m.name)
			continue
		}
		c.requests = append(c.requests, m.name)
		if _, again := conn.names[m.id]; !again {
			c.open++
		}
		conn.names[m.id] = m.name
		if !conn.inTrip {
			conn.inTrip = true
			c.trips++
		}
		f := c.takeFault(m.name)
		switch {
		case f == nil:
		case f.kind == dropRequest:
			conn.link.reset()
			close(f.met)
			c.mu.Unlock()
			return false
		case f.kind == holdRequest:
			held = append(held, f)
		default:
			conn.waiting[m.id] = f
		}
	}
	c.mu.Unlock()
	wait(held)
	return true
}

// wait until all that is held may go on.
func wait(held []*fault) {
	for _, f := range held {
		close(f.met)
		<-f.release
	}
}

// answered notes the replies in u and tells whether u may go to the client.
func (conn *counted) answered(u *unit) bool {
	c := conn.counter
	var held []*fault
	c.mu.Lock()
	for _, m := range u.messages {
		conn.inTrip = false
		name, asked := conn.names[m.id]
		if asked {
			c.open--
		}
		f := conn.waiting[m.id]
		delete(conn.names, m.id)
		delete(conn.waiting, m.id)
		before := conn.last[name]
		conn.last[name] = u.raw
		switch {
		case f == nil:
		case f.kind == dropReply:
			conn.link.reset()
			close(f.met)
			c.mu.Unlock()
			return false
		case f.kind == repeatReply:
			u.raw = slices.Concat(before, u.raw)
			close(f.met)
		default:
			held = append(held, f)
		}
	}
	c.mu.Unlock()
	wait(held)
	return true
}

// ended gives back the faults whose reply never came, to meet a later request.
func (conn *counted) ended() {
	c := conn.counter
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open -= len(conn.names)
	for _, f := range conn.waiting {
		c.faults = append(c.faults, f)
	}
}
