package engine

import (
	"errors"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// batch is the requests of one write transaction.
type batch struct {
	engine *Engine
	snap   *Snapshot

	before, header Header // as read, and as the batch leaves it
	loaded         bool   // the header was read
	wrote          bool   // the transaction has something to commit

	lone   bool                  // it has one request, which asks for each mark once
	marks  map[string]markRecord // as the batch leaves them, of those it has read
	raised []raise               // whose marks are to be cached

	bytes       int           // of pending writes, and of marks that may be raised
	written     int           // of bytes, what pending writes are
	inFunctions time.Duration // in which functions ran

	open    []*request // to be delivered after the commit
	results []error    // of open, nil for what was applied
}

// markRecord is a mark and its record, nil if there is none.
type markRecord struct {
	mark   fence.Mark
	record []byte
}

// raise is a mark that is to replace another.
type raise struct {
	resource string
	old      []byte // record of the other
	markRecord
}

// Raises are the marks that a request replaced.
type Raises []raise

// All yields resources and marks.
func (rs Raises) All(yield func(Marked) bool) {
	for _, r := range rs {
		if !yield(Marked{r.resource, r.mark}) {
			return
		}
	}
}

// add decides a request and applies it to the transaction. spoiled means that
// it was applied in part, so that the transaction is of no use.
func (b *batch) add(r *request) (spoiled bool, err error) {
	if r.unwound { // in a transaction that was given up; it cannot run again
		return false, errUnwound
	}
	if r.ctx.Err() != nil {
		return false, notApplied(r.ctx)
	}
	raises, err := b.decide(r.tx.claims)
	if err != nil {
		return false, err
	}
	if r.fn != nil {
		if err := b.runFunction(r); err != nil {
			return false, err
		}
	}
	b.bytes += r.tx.size
	b.written += r.tx.size - r.tx.marks
	r.report = Report{Raised: raises}
	return b.apply(raises, r.tx)
}

// runFunction lets the caller of r run its function and waits for its end.
func (b *batch) runFunction(r *request) error {
	if !b.engine.queue.startFunction(r) {
		return notApplied(r.ctx)
	}
	began := time.Now()
	r.turn <- b.snap
	err := <-r.ran
	b.inFunctions += max(time.Since(began), 1)
	b.engine.queue.endFunction(r)
	r.unwound = errors.Is(err, errUnwound)
	if err != nil {
		return &FuncError{err}
	}
	return nil
}

// decide applies the rule to each claim, in order.
func (b *batch) decide(claims []Claim) (raises []raise, err error) {
	for _, c := range claims {
		have, err := b.mark(c.Resource)
		if err != nil {
			return nil, err
		}
		raised, err := fence.Admit(c.Resource, c.Token, have.mark)
		if err != nil {
			return nil, err
		}
		if raised {
			if b.engine.verify && !c.Verified {
				return nil, &UnansweredError{c}
			}
			// As it will be read.
			m := fence.Mark{Token: c.Token, RaisedAt: time.Unix(0, nanos(time.Now())).UTC()}
			raises = append(raises, raise{c.Resource, have.record, markRecord{m, EncodeMark(c.Resource, m)}})
		}
	}
	return raises, nil
}

// mark returns the mark of a resource as the requests so far leave it.
func (b *batch) mark(resource string) (have markRecord, err error) {
	if have, found := b.marks[resource]; found {
		return have, nil
	}
	err = b.snap.do(inMarks, func() error {
		have.mark, have.record, err = b.snap.mark(resource)
		return err
	})
	if err == nil {
		b.keep(resource, have)
	}
	return have, err
}

func (b *batch) keep(resource string, m markRecord) {
	if b.lone {
		return
	}
	if b.marks == nil {
		b.marks = make(map[string]markRecord)
	}
	b.marks[resource] = m
}

// apply writes marks and overlays into the transaction. The header that counts
// them is written once, by putHeader.
func (b *batch) apply(raises []raise, t *Tx) (spoiled bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := b.snap
	err = s.do(inAll, func() error {
		if !b.loaded {
			if b.before, err = s.readHeader(); err != nil {
				return err
			}
			b.header, b.loaded = b.before, true
			s.counts = &b.header
		}
		for i, r := range raises {
			marks, err := s.writing(&s.marks)
			if err != nil {
				return err
			}
			spoiled = true // until the end of the request
			b.header.Marks.replace(r.old, r.record)
			raises[i].old = nil // memory of the file
			if err := marks.Put([]byte(r.resource), r.record); err != nil {
				return s.damagedMark(r.resource, err.Error())
			}
			b.keep(r.resource, r.markRecord)
		}
		wrote := len(raises) > 0
		for i := range t.pending {
			for p := range t.pending[i].all {
				spoiled = true
				changed, err := s.applyWrite(t.claims[i].Resource, p, &b.header.Values)
				if err != nil {
					return err
				}
				wrote = wrote || changed
			}
		}
		b.raised = append(b.raised, raises...)
		b.wrote = b.wrote || wrote
		return nil
	})
	return spoiled && err != nil, err
}

// applyWrite stores or deletes one record and reports whether there was anything
// to do. What is stored is within bbolt's limits, so that an error means that
// what stands there now is no record.
func (s *Snapshot) applyWrite(resource string, p pending, values *Tally) (changed bool, err error) {
	key := []byte(p.key)
	at := EncodeKey(resource, key)
	data, err := s.writing(&s.data)
	if err != nil {
		return false, err
	}
	old, err := data.Get(at)
	if err != nil {
		return false, err
	}
	values.replace(old, p.record)
	switch {
	case p.record != nil:
		err = data.Put(at, p.record)
	case old != nil:
		err = data.Delete(at)
	default:
		// As with a read, it may be there and hidden.
		_, err := s.absent(data, at, s.soundValue)
		return false, err
	}
	if err != nil {
		return false, s.damagedValue(resource, key, err.Error())
	}
	return true, nil
}

// putHeader writes the header, if it has changed.
func (b *batch) putHeader() error {
	if b.header == b.before {
		return nil
	}
	return b.snap.do(inHeader, func() error {
		header, err := b.snap.writing(&b.snap.header)
		if err != nil {
			return err
		}
		if err := header.Put(headerKey, b.header.Encode()); err != nil {
			return &Damage{Path: b.snap.path, Kind: "header", Problem: err.Error()}
		}
		return nil
	})
}
