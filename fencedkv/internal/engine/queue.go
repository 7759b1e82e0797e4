package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// request is a Tx that waits to be decided and applied. Its caller waits in Do.
type request struct {
	ctx context.Context
	tx  *Tx
	fn  func(*Tx) error // nil if tx has its writes

	turn chan *Snapshot // the function may run; has room; nil without one
	ran  chan error     // what it returned; has room
	done chan struct{}  // closed when err is set; nil for a request that is not queued

	over    bool // err is the result; the committer's until done is closed
	err     error
	report  Report // the committer's too
	unwound bool   // the function did not return; the committer's

	stage stage // guarded by queue.mu
}

// outcome returns what Do does, once the result is there.
func (r *request) outcome() (Report, error) {
	if r.err != nil {
		return Report{}, r.err
	}
	return r.report, nil
}

// deliver gives the caller, if it is still there, the result.
func (r *request) deliver(err error) {
	r.over, r.err = true, err
	if r.done != nil {
		close(r.done)
	}
}

// stage is how far a request has come.
type stage uint8

const (
	waiting    stage = iota // in the queue
	decided                 // in a batch that is not committed yet
	running                 // its function runs, or is about to
	withdrawn               // its caller has gone
	committing              // too late to withdraw it
)

// errUnwound is the outcome of a function that panicked or called
// runtime.Goexit, which goes on in its caller after the commit.
var errUnwound = errors.New("the function did not return")

// run runs the function on the goroutine of its caller.
//
// A function that panics or calls runtime.Goexit may have read what requests
// before it in the batch have written. Its caller goes on, unwinding, only when
// that is durable: it must not be able to look again and find it missing.
func (r *request) run(s *Snapshot) {
	err := errUnwound
	defer func() {
		r.ran <- err
		if errors.Is(err, errUnwound) {
			<-r.done
		}
	}()
	r.tx = NewTx(r.tx.claims...)
	r.tx.attach(s)
	defer r.tx.detach()
	err = r.fn(r.tx)
}

// queue holds the requests that wait, in order of arrival.
type queue struct {
	wake    chan struct{} // has an element if there may be something to do
	size    atomic.Int64  // of requests
	batch   atomic.Int64  // how many the last batch had
	latency atomic.Int64  // of the last commit, a time.Duration

	mu       sync.Mutex
	requests []*request
	busy     bool // a batch, or a request of its own, is being processed
	closed   bool
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// tryAlone reports whether the caller may process one request itself, which
// saves a lone writer the way to the committer's goroutine and back. It then
// calls leave. With several writers it would make batches of one: they queue.
func (q *queue) tryAlone() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy || len(q.requests) > 0 || q.batch.Load() > 1 {
		return false
	}
	q.busy = true
	return true
}

// leave lets the next batch begin.
func (q *queue) leave() {
	q.mu.Lock()
	q.busy = false
	queued := len(q.requests) > 0
	q.mu.Unlock()
	if queued {
		q.signal()
	}
}

// add queues a request; its result comes through r.done.
func (q *queue) add(r *request) {
	r.done = make(chan struct{})
	if r.fn != nil {
		r.turn, r.ran = make(chan *Snapshot, 1), make(chan error, 1)
	}
	q.mu.Lock()
	q.requests = append(q.requests, r)
	q.size.Store(int64(len(q.requests)))
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close lets the committer end once the queue is empty.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

// withdraw takes r out and reports true, unless its function or its commit has
// begun.
func (q *queue) withdraw(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch r.stage {
	case waiting:
		if i := slices.Index(q.requests, r); i >= 0 {
			q.requests = slices.Delete(q.requests, i, i+1)
			q.size.Store(int64(len(q.requests)))
		}
	case decided:
	default:
		return false
	}
	r.stage = withdrawn
	return true
}

// Bounds of a batch. One request is taken whatever its size.
const (
	maxBatch      = 4096
	maxBatchBytes = 64 << 20
)

// take waits for requests and takes the first ones, as many as fit into a batch.
// It returns nil when the queue is closed and empty. After a batch comes leave.
func (q *queue) take() []*request {
	for {
		q.gather()
		if batch, closed := q.cut(); batch != nil || closed {
			return batch
		}
		<-q.wake
	}
}

// gather lets the writers that were just woken come back before a batch is cut:
// without it they would find a commit of the first few of them under way, and
// batches would be half full. It yields until as many wait as those that were
// waiting already and the last batch together, or the queue has not grown for
// some time. Beside goroutines that compute one yield can take milliseconds, so
// it ends after a quarter of what the last commit took.
func (q *queue) gather() {
	const (
		patient = 512 // yields without growth
		least   = 200 * time.Microsecond
	)
	n := q.size.Load()
	want := min(n+q.batch.Load(), maxBatch)
	longest := max(least, time.Duration(q.latency.Load())/4)
	for began, still := time.Now(), 0; n < want && still < patient && time.Since(began) < longest; {
		runtime.Gosched()
		now := q.size.Load()
		if still++; now > n {
			still = 0
		}
		n = now
	}
}

func (q *queue) cut() (batch []*request, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		return nil, false
	}
	n, bytes := 0, 0
	for ; n < min(len(q.requests), maxBatch); n++ {
		r := q.requests[n]
		if bytes += r.tx.size; n > 0 && bytes > maxBatchBytes {
			break
		}
		r.stage = decided
	}
	if n == 0 {
		return nil, q.closed
	}
	q.busy = true
	q.batch.Store(int64(n))
	batch = slices.Clone(q.requests[:n])
	q.requests = slices.Delete(q.requests, 0, n)
	q.size.Store(int64(len(q.requests)))
	return batch, false
}

// putBack returns requests to the head of the queue, but for those that were
// withdrawn.
func (q *queue) putBack(rs []*request) {
	if len(rs) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	rs = slices.DeleteFunc(slices.Clone(rs), func(r *request) bool { return r.stage == withdrawn })
	for _, r := range rs {
		r.stage = waiting
	}
	q.requests = slices.Insert(q.requests, 0, rs...)
	q.size.Store(int64(len(q.requests)))
}

// startFunction reports whether the function of r may run: its caller is there
// and stays.
func (q *queue) startFunction(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.stage == withdrawn {
		return false
	}
	r.stage = running
	return true
}

// endFunction lets the caller of r withdraw again.
func (q *queue) endFunction(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r.stage = decided
}

// stay reports whether all of rs are without a result and have their callers
// there. If so none can be withdrawn any more; if not it returns those of which
// it is true.
func (q *queue) stay(rs []*request) (left []*request, all bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	gone := func(r *request) bool { return r.over || r.stage == withdrawn }
	if slices.ContainsFunc(rs, gone) {
		return slices.DeleteFunc(slices.Clone(rs), gone), false
	}
	for _, r := range rs {
		r.stage = committing
	}
	return rs, true
}
