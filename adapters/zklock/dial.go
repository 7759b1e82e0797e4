package zklock

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// hosts gives the servers to the client library in turn. The library's own
// provider resolves names only once, and makes it wait a second before it goes
// back to the server it comes from, longer than a short session lives.
type hosts struct {
	over func() bool

	mu        sync.Mutex
	servers   []string
	next      int
	fails     int       // since the last connection that lasted
	connected time.Time // when the last connection was greeted; zero when that was counted
}

func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers = slices.Clone(servers)
	return nil
}

func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next returns the next server. The library looks whether it was closed only
// when retryStart is true.
func (h *hosts) Next() (server string, retryStart bool) {
	over := h.over()
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next%len(h.servers)]
	h.next++
	return server, over
}

func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connected = time.Now()
}

// pause is how long to wait before the next connection: not at all at first,
// so that a broken connection costs little; longer with each round of all
// servers. A server that greets and soon hangs up has failed, too.
func (h *hosts) pause() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	const shortest, longest = 20 * time.Millisecond, time.Second
	if !h.connected.IsZero() && time.Since(h.connected) >= longest {
		h.fails = 0
	}
	h.connected = time.Time{}
	rounds := h.fails / len(h.servers)
	h.fails++
	if rounds == 0 {
		return 0
	}
	d := min(shortest<<min(rounds-1, 6), longest)
	return d/2 + rand.N(d/2)
}

// dial makes a connection for the client library.
func (s *session) dial(hosts *hosts, server string) (net.Conn, error) {
	if s.isOver() {
		return nil, net.ErrClosed
	}
	select {
	case <-time.After(hosts.pause()):
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
	limit := s.dialTimeout()
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	conn, err := s.config.dial(ctx, server)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.lastErr = err
		return nil, err
	}
	if s.dead != nil || s.stopping {
		conn.Close()
		return nil, net.ErrClosed
	}
	if s.lastErr == nil {
		s.lastErr = errors.New("nothing heard from " + server)
	}
	w := newWire(conn, time.Now().Add(limit))
	w.onHandshake, w.onProof, w.onBroken = s.handshake, s.prove, s.broken
	s.wire = w
	return w, nil
}

// dialTimeout bounds making a connection, and then the wait for its greeting,
// so that there is time for another server before the session has expired.
func (s *session) dialTimeout() time.Duration {
	return min(s.negotiated()/3, 5*time.Second)
}

func (c *sessionConfig) dial(ctx context.Context, server string) (net.Conn, error) {
	if config := c.opts.tls(); config != nil {
		return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", server)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", server)
}
