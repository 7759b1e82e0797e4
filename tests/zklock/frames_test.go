package zklock_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// frames is a proxy that shows each packet to a function, which may change it
// or, with nil, drop it.
type frames struct {
	addr     string
	server   string
	toServer func([]byte) []byte
	toClient func([]byte) []byte

	mu    sync.Mutex
	conns []net.Conn
}

func newFrames(t testing.TB, server string, toServer, toClient func([]byte) []byte) *frames {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &frames{addr: ln.Addr().String(), server: server, toServer: toServer, toClient: toClient}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			work.Go(func() { f.serve(client) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		f.reset()
		work.Wait()
	})
	return f
}

// reset closes all connections.
func (f *frames) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

func (f *frames) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", f.server)
	if err != nil {
		return
	}
	defer server.Close()
	f.mu.Lock()
	f.conns = append(f.conns, client, server)
	f.mu.Unlock()
	done := make(chan struct{}, 2)
	go func() { pump(client, server, f.toServer); done <- struct{}{} }()
	go func() { pump(server, client, f.toClient); done <- struct{}{} }()
	<-done
	client.Close()
	server.Close()
	<-done
}

func pump(from io.Reader, to io.Writer, change func([]byte) []byte) {
	for {
		var length [4]byte
		if _, err := io.ReadFull(from, length[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(length[:])%(64<<20))
		if string(length[:]) == "srvr" {
			body = nil
		}
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		if body = change(append(length[:], body...)); body == nil {
			continue
		}
		if _, err := to.Write(body); err != nil {
			return
		}
	}
}
