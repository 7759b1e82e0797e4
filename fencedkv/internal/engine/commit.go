package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Do decides t by fence.Admit and applies it: the marks that its claims raise
// and its writes, durable when Do returns nil. fn, which may be nil, adds reads
// and writes; it runs on the caller's goroutine, on the state that t is decided
// on. If it returns an error, panics or calls runtime.Goexit nothing is applied,
// and nothing stays locked.
//
// Every error but one over ErrUnknownOutcome means that nothing was applied. If
// ctx ends before the commit has begun, nothing is applied and the error is over
// ctx.Err(). A Tx is used for one Do.
func (e *Engine) Do(ctx context.Context, t *Tx, fn func() error) error {
	// Most refusals rest on a durable mark. They are answered here, so that a
	// stale writer never makes a good one wait.
	err := e.View(func(s *Snapshot) error {
		for _, c := range t.claims {
			m, err := s.Mark(c.Resource)
			if err != nil {
				return err
			}
			if _, err := fence.Admit(c.Resource, c.Token, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	select {
	case e.writer <- struct{}{}:
		defer func() { <-e.writer }()
	case <-ctx.Done():
		return notApplied(ctx)
	}
	return e.update(func(s *Snapshot) error {
		// Both channels may have been ready.
		if ctx.Err() != nil {
			return notApplied(ctx)
		}
		raises, err := s.decide(t.claims, time.Now())
		if err != nil {
			return err
		}
		if fn != nil {
			if err := runWith(s, t, fn); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return notApplied(ctx)
			}
		}
		return s.apply(raises, t)
	})
}

// runWith runs fn, during which t can read.
func runWith(s *Snapshot, t *Tx, fn func() error) error {
	t.attach(s)
	defer t.detach()
	return fn()
}

func notApplied(ctx context.Context) error {
	return fmt.Errorf("fencedkv: not applied: %w", Ended(ctx))
}

// Ended returns the error of an ended context, with its cause if that says more.
func Ended(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// errNothing ends an update that has nothing to write.
var errNothing = errors.New("nothing to write")

// update runs fn in a write transaction and commits it. The caller holds
// e.writer, or is Open.
func (e *Engine) update(fn func(*Snapshot) error) error {
	s, err := e.begin(true)
	if err != nil {
		return err
	}
	// A rollback that fails puts the file out of use, which the next call says.
	defer func() { _ = s.end() }()
	if err := fn(s); errors.Is(err, errNothing) {
		return nil
	} else if err != nil {
		return err
	}
	if err := s.commit(); err != nil {
		err = fmt.Errorf("commit to %s: %w", e.path, err)
		e.fail(err)
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return nil
}

// raise is a mark that is to be replaced.
type raise struct {
	resource    string
	old, record []byte // old is nil for the first mark
}

// decide applies the rule to each claim, in order.
func (s *Snapshot) decide(claims []Claim, now time.Time) (raises []raise, err error) {
	err = s.do(inMarks, func() error {
		for _, c := range claims {
			m, old, err := s.mark(c.Resource)
			if err != nil {
				return err
			}
			raised, err := fence.Admit(c.Resource, c.Token, m)
			if err != nil {
				return err
			}
			if raised {
				record := EncodeMark(c.Resource, fence.Mark{Token: c.Token, RaisedAt: now})
				raises = append(raises, raise{c.Resource, old, record})
			}
		}
		return nil
	})
	return raises, err
}

// apply writes marks and overlays into the transaction, and the header that
// counts them.
func (s *Snapshot) apply(raises []raise, t *Tx) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.do(inAll, func() error {
		before, err := s.readHeader()
		if err != nil {
			return err
		}
		h := before
		for _, r := range raises {
			h.Marks.replace(r.old, r.record)
			if err := s.marks.Put([]byte(r.resource), r.record); err != nil {
				return s.damagedMark(r.resource, err.Error())
			}
		}
		wrote := len(raises) > 0
		for _, c := range t.claims {
			for p := range t.pending[c.Resource].all {
				changed, err := s.applyWrite(c.Resource, p, &h.Values)
				if err != nil {
					return err
				}
				wrote = wrote || changed
			}
		}
		switch {
		case !wrote:
			return errNothing
		case h == before:
			return nil
		}
		if err := s.header.Put(headerKey, h.Encode()); err != nil {
			return &Damage{Path: s.path, Kind: "header", Problem: err.Error()}
		}
		return nil
	})
}

// applyWrite stores or deletes one record and reports whether there was anything
// to do. What is stored is within bbolt's limits, so that an error means that
// what stands there now is no record.
func (s *Snapshot) applyWrite(resource string, p pending, values *Tally) (changed bool, err error) {
	key := []byte(p.key)
	at := EncodeKey(resource, key)
	old := s.data.Get(at)
	values.replace(old, p.record)
	if p.record == nil {
		err = s.data.Delete(at)
	} else {
		err = s.data.Put(at, p.record)
	}
	if err != nil {
		return false, s.damagedValue(resource, key, err.Error())
	}
	return old != nil || p.record != nil, nil
}
