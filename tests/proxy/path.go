package proxy

import (
	"net"
	"sync"
	"time"
)

// path is one direction of all connections of a Proxy: what happens to bytes
// on their way.
type path struct {
	mu      sync.Mutex
	held    bool
	delay   time.Duration
	changed chan struct{} // closed, and replaced, at every change
}

func newPath() *path { return &path{changed: make(chan struct{})} }

func (p *path) set(held bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.delay = held, delay
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *path) state() (held bool, delay time.Duration, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held, p.delay, p.changed
}

// wait returns when what was sent at the given time may arrive, or false when
// the proxy ends before that.
func (p *path) wait(sent time.Time, end <-chan struct{}) bool {
	for {
		held, delay, changed := p.state()
		var due <-chan time.Time
		if !held {
			left := time.Until(sent.Add(delay))
			if left <= 0 {
				return true
			}
			due = time.After(left)
		}
		select {
		case <-due:
		case <-changed:
		case <-end:
			return false
		}
	}
}

// chunk is a piece of a stream that is on its way.
type chunk struct {
	data []byte
	sent time.Time
}

// queueLength bounds what one direction of a connection keeps of data that is
// held or late. The rest waits in the kernel, and then at the sender.
const queueLength = 64

// carry moves bytes until from has ended and all have arrived, the end itself
// included, or the proxy ends. Like a cable it does not tell the sender when
// the receiver has gone: the other direction does.
func (p *path) carry(from, to *net.TCPConn, end <-chan struct{}) {
	queue := make(chan chunk, queueLength)
	go func() {
		defer close(queue)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				select {
				case queue <- chunk{data[:n], time.Now()}:
				case <-end:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range queue {
		if p.wait(c.sent, end) {
			_, _ = to.Write(c.data)
		}
	}
	p.wait(time.Now(), end)
}
