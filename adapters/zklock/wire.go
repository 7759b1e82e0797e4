package zklock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// wire is one connection of a session to one server. It reads along with the
// client library, which does not tell what the server answered to the connect
// request, and notes when signs of life were sent: see proof.
//
// It relies on the library's habit of one Write per packet.
type wire struct {
	net.Conn
	handshakeBy time.Time // the library would wait far longer than a session lives
	onHandshake func(handshake)
	onProof     func(sent time.Time)
	onBroken    func(error) // what was read is of no use

	mu      sync.Mutex
	proof   proof
	greeted bool              // the connect request was sent
	ready   bool              // its answer has come
	sent    time.Time         // when the connect request was sent
	pending map[int32]request // by xid
	pings   []time.Time       // sent and not answered

	// The frame that is being read; for the reading goroutine only.
	head [4 + headerSize]byte
	have int // bytes of head that are there
	left int // bytes of the frame behind head
}

// handshake is the server's answer to a connect request.
type handshake struct {
	sent    time.Time     // just before the request was sent
	session int64         // 0: the session has expired
	timeout time.Duration // as negotiated
}

// request is one that was sent and not answered.
type request struct {
	op   int32
	sent time.Time
}

const (
	headerSize = 16 // of an answer: xid int32, zxid int64, error int32

	maxHandshake = 4 << 10
	maxFrame     = 64 << 20 // far above any jute.maxbuffer

	pingXid = -2

	// Operations that the leader decides.
	opCreate  = 1
	opDelete  = 2
	opSetData = 5
	opMulti   = 14
)

func newWire(conn net.Conn, handshakeBy time.Time) *wire {
	return &wire{Conn: conn, handshakeBy: handshakeBy, pending: make(map[int32]request)}
}

// Write notes what is sent, before it is.
func (w *wire) Write(b []byte) (int, error) {
	w.note(b)
	return w.Conn.Write(b)
}

func (w *wire) note(b []byte) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.greeted:
		w.greeted, w.sent = true, now
	case len(b) >= 12:
		xid, op := int32(binary.BigEndian.Uint32(b[4:])), int32(binary.BigEndian.Uint32(b[8:]))
		if xid == pingXid {
			w.pings = append(w.pings, now)
		} else {
			w.pending[xid] = request{op: op, sent: now}
		}
	}
}

// Read reads along. A frame that would make the library panic, or take all
// memory, is an error.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if scanned := w.scan(b[:n]); scanned != nil {
		scanned = fmt.Errorf("%s sent %w", w.RemoteAddr(), scanned)
		w.onBroken(scanned)
		return 0, scanned
	}
	return n, err
}

func (w *wire) scan(b []byte) error {
	for len(b) > 0 {
		if w.have == len(w.head) {
			skip := min(w.left, len(b))
			w.left -= skip
			b = b[skip:]
			if w.left == 0 {
				w.have = 0
			}
			continue
		}
		n := copy(w.head[w.have:], b)
		w.have += n
		b = b[n:]
		if w.have < len(w.head) {
			// The length alone is enough to see that it is no answer.
			if w.have >= 4 && w.left == 0 {
				if err := w.checkLength(); err != nil {
					return err
				}
			}
			continue
		}
		if err := w.checkLength(); err != nil {
			return err
		}
		if err := w.answered(w.head[4:]); err != nil {
			return err
		}
		if w.left == 0 {
			w.have = 0
		}
	}
	return nil
}

func (w *wire) checkLength() error {
	length := int64(binary.BigEndian.Uint32(w.head[:4]))
	most := int64(maxFrame)
	if !w.isReady() {
		most = maxHandshake
	}
	if length < headerSize || length > most {
		return fmt.Errorf("an answer of %d bytes, this is no ZooKeeper server", length)
	}
	w.left = int(length) - headerSize
	return nil
}

// answered takes the first bytes of an answer.
func (w *wire) answered(head []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ready {
		// protocolVersion int32, timeOut int32, sessionID int64
		w.ready = true
		timeout := time.Duration(int32(binary.BigEndian.Uint32(head[4:]))) * time.Millisecond
		h := handshake{sent: w.sent, session: int64(binary.BigEndian.Uint64(head[8:])), timeout: timeout}
		if h.session != 0 && timeout <= 0 {
			return errors.New("a session timeout that is not positive, this is no ZooKeeper server")
		}
		w.proof = proof{settle: timeout / 4, touches: []time.Time{w.sent}}
		w.onHandshake(h)
		return nil
	}
	xid, failed := int32(binary.BigEndian.Uint32(head)), binary.BigEndian.Uint32(head[12:]) != 0
	if xid == pingXid {
		if len(w.pings) > 0 {
			w.proof.touch(w.pings[0])
			w.pings = w.pings[1:]
		}
		return nil
	}
	r, ok := w.pending[xid]
	if !ok {
		return nil // a watch event
	}
	delete(w.pending, xid)
	w.proof.touch(r.sent)
	switch r.op {
	case opCreate, opDelete, opSetData, opMulti:
		if failed || time.Since(r.sent) > w.proof.settle {
			return nil
		}
		if at, ok := w.proof.decided(r.sent); ok {
			w.onProof(at)
		}
	}
	return nil
}

func (w *wire) isReady() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

// SetReadDeadline keeps the deadline of the handshake until it is over.
func (w *wire) SetReadDeadline(t time.Time) error {
	if !w.isReady() {
		t = w.handshakeBy
	}
	return w.Conn.SetReadDeadline(t)
}

// proof tells from when on the leader counts the session's timeout, as far as
// a client can know.
//
// A server notes signs of life (touches) and hands them to its leader with its
// answer to the leader's next ping, which comes every half tick. Requests that
// only the leader can decide go the same way, in order. So when one of these,
// sent long enough after a touch, is decided, then the leader knows the touch,
// and will keep the session for its timeout from then. One whose answer took as
// long proves nothing: the leader may have stood still since before its ping.
//
// Source: ZooKeeper's LearnerHandler, Learner.ping and SessionTrackerImpl.
type proof struct {
	settle  time.Duration // from a touch to the request that proves it; at least half a tick
	touches []time.Time   // in order, on one connection
}

// touch notes that the server has answered what was sent at the time.
func (p *proof) touch(sent time.Time) {
	last := p.touches[len(p.touches)-1]
	if sent.Sub(last) >= p.settle/8 {
		p.touches = append(p.touches, sent)
	}
	// Of those that a request sent now would prove, the last one is enough.
	for len(p.touches) > 1 && !p.touches[1].After(sent.Add(-p.settle)) {
		p.touches = p.touches[1:]
	}
}

// decided returns the last touch that is proven by a request of that time.
func (p *proof) decided(sent time.Time) (time.Time, bool) {
	var at time.Time
	for _, t := range p.touches {
		if t.After(sent.Add(-p.settle)) {
			break
		}
		at = t
	}
	return at, !at.IsZero()
}
