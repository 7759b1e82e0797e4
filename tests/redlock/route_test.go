package redlock_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// route is an address behind which the server can be another one for each new
// connection.
type route struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	open   map[net.Conn]bool
}

func newRoute(t *testing.T, target string) *route {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &route{listener: listener, target: target, open: make(map[net.Conn]bool)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.carry(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		r.to("127.0.0.1:1")
		all.Wait()
	})
	return r
}

func (r *route) addr() string { return r.listener.Addr().String() }

// to ends the connections, and leads new ones to the target.
func (r *route) to(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	for conn := range r.open {
		conn.Close()
	}
}

func (r *route) carry(client net.Conn) {
	defer client.Close()
	r.mu.Lock()
	target := r.target
	r.open[client] = true
	r.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	_, _ = io.Copy(client, server)
	client.Close()
	<-done
}
