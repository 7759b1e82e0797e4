package zklock

import (
	"net"
	"time"
)

// What the tests reach into. Each is a part that a real server cannot be
// brought to show, or not soon.

var (
	EscapeName   = escapeName
	ParseEntry   = parseEntry
	NextSequence = nextSequence
	TooOld       = tooOld
)

// Stand returns whether the attempt is in the queue, and the one before it.
func Stand(children []string, id string) (exists bool, before string) {
	s := stand(children, id)
	return s.exists, s.before
}

// ParseAddress returns what an address and options say.
func ParseAddress(text string, opts *Options) (servers []string, root string, auth *Auth, err error) {
	a, err := parseAddress(text)
	if err != nil {
		return nil, "", nil, err
	}
	root, auth, err = a.settle(opts)
	return a.servers, root, auth, err
}

// Hosts paces the connections to so many servers.
type Hosts struct{ hosts }

// NewHosts has n servers.
func NewHosts(n int) *Hosts { return &Hosts{hosts{servers: make([]string, n)}} }

// Pause is how long the next connection waits.
func (h *Hosts) Pause() time.Duration { return h.pause() }

// Wire is a connection that is read along.
type Wire struct {
	net.Conn
	Session int64
	Timeout time.Duration
	Greeted time.Time // when the connect request was sent
	Proven  time.Time
}

// NewWire reads conn along.
func NewWire(conn net.Conn, handshakeBy time.Time) *Wire {
	inner := newWire(conn, handshakeBy)
	w := &Wire{Conn: inner}
	inner.onHandshake = func(h handshake) { w.Session, w.Timeout, w.Greeted, w.Proven = h.session, h.timeout, h.sent, h.sent }
	inner.onBroken = func(error) {}
	inner.onProof = func(sent time.Time) { w.Proven = sent }
	return w
}
