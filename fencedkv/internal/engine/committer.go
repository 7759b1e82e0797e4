package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// commits is the committer, the goroutine that decides and applies what is
// queued. It takes everything that was queued when the commit before had ended,
// without a timer: under load the queue fills while a commit waits for the disk,
// and without load nobody waits.
func (e *Engine) commits() {
	defer close(e.ended)
	for {
		batch := e.queue.take()
		if batch == nil {
			return
		}
		e.process(batch)
		e.queue.leave()
	}
}

// process gives every request its result, or puts it back into the queue.
//
// What goes wrong while requests are applied, or before the commit has begun to
// change the file, may be the fault of one of them. Each is then decided again
// alone, so that it costs only itself.
func (e *Engine) process(rs []*request) {
	for len(rs) > 0 {
		left, alone := e.attempt(rs)
		if !alone {
			rs = left
			continue
		}
		for _, r := range left {
			e.attempt([]*request{r})
		}
		return
	}
}

// attempt decides requests on the state that those before them left, commits
// what was admitted, and delivers the results. It returns the requests that have
// none because the transaction was given up, and whether each of them is to be
// tried alone; none, if there was only one.
func (e *Engine) attempt(rs []*request) (left []*request, alone bool) {
	s, err := e.begin(true)
	if err != nil {
		for _, r := range rs {
			r.deliver(err)
		}
		return nil, false
	}
	// A rollback that fails puts the file out of use, which the next call says.
	defer func() { _ = s.end() }()

	b := &batch{engine: e, snap: s, lone: len(rs) == 1}
	for i, r := range rs {
		if i > 0 && b.full() {
			e.queue.putBack(rs[i:])
			break
		}
		spoiled, err := b.add(r)
		switch {
		case spoiled:
			return b.giveUp(append(b.open, rs[i:]...), err)
		case err != nil && !b.wrote:
			r.deliver(err) // it rests on the last commit
		default:
			b.open = append(b.open, r)
			b.results = append(b.results, err)
		}
	}
	return b.finish()
}

// maxBatchTime is how long the functions of a batch may have run in all when
// another request is taken into it: those before wait for them.
const maxBatchTime = 10 * time.Millisecond

// full reports whether no more requests are to be taken in. The last one may have
// been of any size, so that a batch has maxBatchBytes and MaxPending at most.
func (b *batch) full() bool { return b.bytes > maxBatchBytes || b.inFunctions > maxBatchTime }

// giveUp drops the transaction because of err, of which it is not known which of
// the requests without a result is to blame.
func (b *batch) giveUp(rs []*request, err error) (left []*request, alone bool) {
	if len(rs) > 1 {
		return rs, true
	}
	rs[0].deliver(err)
	return nil, false
}

// finish commits and delivers what is open.
func (b *batch) finish() (left []*request, alone bool) {
	if left, all := b.stay(); !all {
		return left, false
	}
	if b.wrote {
		if err := b.putHeader(); err != nil {
			return b.giveUp(b.open, err)
		}
		b.marks = nil
		began := time.Now()
		if err := b.snap.commit(); err != nil {
			return b.failed(err)
		}
		done := Commit{Latency: time.Since(began), Requests: len(b.open), Bytes: b.written}
		b.engine.queue.latency.Store(int64(done.Latency))
		b.open[slices.Index(b.results, nil)].report.Commit = done
		for _, r := range b.raised {
			b.engine.marks.put(r.resource, r.mark, b.snap.id)
		}
	}
	for i, r := range b.open {
		r.deliver(b.results[i])
	}
	return nil, false
}

// stay reports whether the contexts of all open requests go on. If so, none can
// be withdrawn any more. If not it returns those whose contexts do.
func (b *batch) stay() (left []*request, all bool) {
	for i, r := range b.open {
		// Since it was asked, others and their functions have taken their time.
		if b.results[i] == nil && r.ctx.Err() != nil {
			r.deliver(notApplied(r.ctx))
		}
	}
	return b.engine.queue.stay(b.open)
}

// failed deals with a commit that failed.
func (b *batch) failed(err error) (left []*request, alone bool) {
	outcome := boltfile.Unknown
	if c, ok := errors.AsType[*boltfile.CommitError](err); ok {
		outcome = c.Outcome
	}
	if outcome == boltfile.NoRoom {
		return b.giveUp(b.open, fmt.Errorf("fencedkv: not applied: %w", err))
	}
	b.engine.fail(err)
	for i, r := range b.open {
		// A refusal, or the error of a function, would rest on writes that may
		// not be there.
		if outcome == boltfile.NotApplied || b.results[i] != nil {
			r.deliver(fmt.Errorf("%w: not applied: %w", ErrFailed, err))
			continue
		}
		r.deliver(fmt.Errorf("%w: %w", ErrUnknownOutcome, err))
	}
	return nil, false
}
