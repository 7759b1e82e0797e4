package zklock_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/adapters/zklock"
)

// peer is the server's end of a Wire.
type peer struct {
	*testing.T
	wire   *zklock.Wire
	server net.Conn
	read   chan error
}

const sessionTimeout = 12 * time.Second

func newPeer(t *testing.T) *peer {
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close(); server.Close() })
	p := &peer{T: t, wire: zklock.NewWire(client, time.Now().Add(time.Second)), server: server, read: make(chan error, 1)}
	go func() {
		_, err := io.Copy(io.Discard, p.wire)
		p.read <- err
	}()
	return p
}

func packet(body ...[]byte) []byte {
	var all []byte
	for _, b := range body {
		all = append(all, b...)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(all))), all...)
}

func i32(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
func i64(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// send sends a request of the client.
func (p *peer) send(b []byte) {
	p.Helper()
	go p.wire.Write(b)
	if _, err := io.ReadFull(p.server, make([]byte, len(b))); err != nil {
		p.Fatal(err)
	}
}

// answer sends an answer of the server, in pieces of n bytes.
func (p *peer) answer(b []byte, n int) {
	p.Helper()
	for len(b) > 0 {
		n := min(n, len(b))
		if _, err := p.server.Write(b[:n]); err != nil {
			p.Fatal(err)
		}
		b = b[n:]
	}
	synctest.Wait()
}

func (p *peer) connect(piece int) {
	p.Helper()
	p.send(packet(make([]byte, 44)))
	p.answer(packet(i32(0), i32(int32(sessionTimeout.Milliseconds())), i64(0x1234567890), i32(16), make([]byte, 16)), piece)
}

const (
	create  = 1
	setData = 5
	exists  = 3
)

func (p *peer) exchange(xid, op, failed int32) {
	p.Helper()
	p.send(packet(i32(xid), i32(op), make([]byte, 30)))
	p.answer(packet(i32(xid), i64(99), i32(failed), make([]byte, 7)), 5)
}

func (p *peer) ping() {
	p.Helper()
	p.send(packet(i32(-2), i32(11)))
	p.answer(packet(i32(-2), i64(99), i32(0)), 100)
}

func TestHandshakeIsReadWhateverTheSizeOfThePieces(t *testing.T) {
	for piece := 1; piece <= 41; piece++ {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t)
			sent := time.Now()
			p.connect(piece)
			if p.wire.Session != 0x1234567890 || p.wire.Timeout != sessionTimeout || !p.wire.Greeted.Equal(sent) {
				t.Errorf("pieces of %d bytes: got session %#x, timeout %v", piece, p.wire.Session, p.wire.Timeout)
			}
		})
	}
}

// A quarter of the timeout must lie between a sign of life and the transaction
// that proves that the leader knows of it.
func TestTheProvenTimeIsThatOfAnEarlierSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.connect(100)
		start := time.Now()
		proven := func(want time.Duration, what string) {
			t.Helper()
			if got := p.wire.Proven.Sub(start); got != want {
				t.Errorf("%s: proven at %v, want %v", what, got, want)
			}
		}
		proven(0, "connected")

		time.Sleep(4 * time.Second)
		p.ping()
		proven(0, "a ping proves nothing by itself")
		p.exchange(1, create, 0)
		proven(0, "a transaction right after it neither")
		time.Sleep(2999 * time.Millisecond)
		p.exchange(2, setData, 0)
		proven(0, "nor one too soon")
		time.Sleep(time.Millisecond)
		p.exchange(3, exists, 0)
		proven(0, "nor a read")
		p.exchange(4, setData, -101)
		proven(0, "nor a refused request")
		p.exchange(5, setData, 0)
		proven(4*time.Second, "a transaction a quarter of the timeout later does")

		time.Sleep(4 * time.Second)
		p.ping()
		time.Sleep(3 * time.Second)
		p.send(packet(i32(6), i32(setData), make([]byte, 30)))
		time.Sleep(3*time.Second + time.Millisecond)
		p.answer(packet(i32(6), i64(99), i32(0), make([]byte, 7)), 100)
		proven(4*time.Second, "nor one that waits for so long that the leader may have stood still")
		p.exchange(7, setData, 0)
		proven(14*time.Second, "the next one does")

		for xid := int32(8); xid < 100; xid++ {
			time.Sleep(100 * time.Millisecond)
			p.exchange(xid, setData, 0)
			if lag := time.Since(p.wire.Proven); xid > 40 && (lag < sessionTimeout/4 || lag > sessionTimeout/4+sessionTimeout/16) {
				t.Fatalf("the proven time is %v ago", lag)
			}
		}
	})
}

func TestAnUnansweredRequestIsNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.connect(100)
		start := time.Now()
		time.Sleep(time.Second)
		p.send(packet(i32(-2), i32(11)))
		time.Sleep(4 * time.Second)
		p.exchange(1, create, 0)
		if got := p.wire.Proven.Sub(start); got != 0 {
			t.Errorf("proven at %v, want 0", got)
		}
	})
}

func TestANewConnectionWaitsNoLongerThanItsLimitForTheGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := newPeer(t)
		_ = p.wire.SetReadDeadline(time.Now().Add(time.Hour))
		_ = p.wire.SetReadDeadline(time.Time{})
		<-p.read
		if got := time.Since(start); got != time.Second {
			t.Errorf("gave up after %v, want 1s", got)
		}
	})
}

func TestWhatIsNoZooKeeperServerIsAnErrorNotAPanic(t *testing.T) {
	for what, answer := range map[string][]byte{
		"another protocol":       []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"an empty frame":         packet(),
		"a short frame":          packet(make([]byte, 15)),
		"a frame of 2 GB":        i32(-1),
		"no timeout":             packet(i32(0), i32(0), i64(1), i32(0)),
		"a negative timeout":     packet(i32(0), i32(-5), i64(1), i32(0)),
		"a short frame later on": append(packet(i32(0), i32(1000), i64(1), i32(0)), packet(i32(7))...),
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t)
			p.send(packet(make([]byte, 44)))
			go p.server.Write(answer)
			synctest.Wait()
			select {
			case err := <-p.read:
				if err == nil {
					t.Errorf("%s: the end of the connection, want an error", what)
				}
			default:
				t.Errorf("%s: still reading", what)
			}
			p.server.Close()
		})
	}
}
