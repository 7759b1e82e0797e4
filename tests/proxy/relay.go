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

// serve moves the bytes of a link until it is closed or end is.
type serve func(l *link, end <-chan struct{})

// relay accepts connections on a loopback port and pairs each with one of its
// own to the server.
type relay struct {
	ln     *net.TCPListener
	server string
	serve  serve

	mu    sync.Mutex
	end   chan struct{} // closed when the test ends
	links map[*link]struct{}
	wg    sync.WaitGroup
}

// link is one client's connection and its counterpart.
type link struct {
	client, server *net.TCPConn
}

// newRelay serves until the test ends. No goroutine is left then.
func newRelay(t testing.TB, server string, serve serve) *relay {
	t.Helper()
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	r := &relay{ln: ln, server: server, serve: serve, end: make(chan struct{}), links: make(map[*link]struct{})}
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
	select {
	case <-r.end:
		r.mu.Unlock()
		l.close()
		return
	default:
	}
	r.links[l] = struct{}{}
	r.mu.Unlock()

	r.serve(l, r.end)

	l.close()
	r.mu.Lock()
	delete(r.links, l)
	r.mu.Unlock()
}

// each calls f for the links that are open now.
func (r *relay) each(f func(*link)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		f(l)
	}
}

func (r *relay) close() {
	_ = r.ln.Close()
	r.mu.Lock()
	close(r.end)
	r.mu.Unlock()
	r.each((*link).close)
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
