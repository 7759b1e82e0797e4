package proxy

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// dialTimeout bounds the wait for a server on the same machine.
const dialTimeout = 5 * time.Second

// relay accepts connections on a loopback port and pairs each with one of its
// own to the server.
type relay struct {
	ln     *net.TCPListener
	server string
	serve  func(*link) // moves the bytes until the link is closed

	mu     sync.Mutex
	closed bool
	links  map[*link]struct{}
	wg     sync.WaitGroup
}

// link is one client's connection and its counterpart.
type link struct {
	client, server *net.TCPConn
}

// newRelay serves until the test ends. No goroutine is left then.
func newRelay(t testing.TB, server string, serve func(*link)) *relay {
	t.Helper()
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	r := &relay{ln: ln, server: server, serve: serve, links: make(map[*link]struct{})}
	r.wg.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

func (r *relay) addr() string { return r.ln.Addr().String() }

func (r *relay) accept() {
	for {
		client, err := r.ln.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client has already gone
		}
		r.wg.Go(func() { r.join(client) })
	}
}

func (r *relay) join(client *net.TCPConn) {
	server, err := net.DialTimeout("tcp", r.server, dialTimeout)
	if err != nil {
		reset(client) // like the port of a server that is down
		return
	}
	l := &link{client: client, server: server.(*net.TCPConn)}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		l.close()
		return
	}
	r.links[l] = struct{}{}
	r.mu.Unlock()

	r.serve(l)

	l.close()
	r.mu.Lock()
	delete(r.links, l)
	r.mu.Unlock()
}

// resetAll resets the connections that are open now.
func (r *relay) resetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.reset()
	}
}

func (r *relay) close() {
	_ = r.ln.Close()
	r.mu.Lock()
	r.closed = true
	for l := range r.links {
		l.close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// reset makes the client see ECONNRESET, and the server an ordinary end.
func (l *link) reset() {
	reset(l.client)
	_ = l.server.Close()
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // close sends RST instead of FIN
	_ = conn.Close()
}

// both runs the two directions of a link until both have ended. When the
// client has no more to say the server is told and may still answer; when the
// server ends, so does the link.
func (l *link) both(upstream, downstream func() error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		if upstream() != nil {
			l.close()
			return
		}
		_ = l.server.CloseWrite()
	})
	wg.Go(func() {
		_ = downstream()
		l.close()
	})
	wg.Wait()
}
