package zklock_test

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// The server counts from when the request arrived, so the holder must count from
// before it, however late the answer is.
func TestTheLeaseCountsFromBeforeTheSessionBegan(t *testing.T) {
	t.Parallel()
	s, opts := patient(t)
	answered, held := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	var first atomic.Bool
	path := newFrames(t, s.addr, func(b []byte) []byte { return b }, func(b []byte) []byte {
		// The answer to a connect request begins with the protocol version 0,
		// where others have an xid.
		if len(b) >= 8 && binary.BigEndian.Uint32(b[4:]) == 0 && first.CompareAndSwap(false, true) {
			close(answered)
			<-held
		}
		return b
	})
	defer release()
	type dialled struct {
		*zklock.Locker
		error
	}
	done := make(chan dialled, 1)
	go func() {
		l, err := zklock.Dial(path.addr, opts)
		done <- dialled{l, err}
	}()
	bounded.Receive(t, "the server's answer", answered)
	began := time.Now()
	release()
	l := bounded.Receive(t, "Dial", done)
	if l.error != nil {
		t.Fatal(l.error)
	}
	defer bounded.Close(t, l.Locker)
	lease := bounded.Acquire(t, l.Locker, "x")
	if late := lease.Deadline().Sub(began.Add(locks.Validity(opts.SessionTimeout))); late > 0 {
		t.Errorf("the deadline is %v after what the server had granted by then", late)
	}
	bounded.Release(t, lease)
}
