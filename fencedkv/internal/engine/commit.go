package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// FuncError is the error of a function that was given to Do, as it was returned.
type FuncError struct{ Err error }

func (e *FuncError) Error() string { return e.Err.Error() }

// Unwrap returns the function's error.
func (e *FuncError) Unwrap() error { return e.Err }

// Report is what a Tx that was committed did.
type Report struct {
	Raised Raises
	Commit Commit // zero for all but one Tx of a commit
}

// Commit is what a commit was.
type Commit struct {
	Latency  time.Duration
	Requests int
	Bytes    int // of pending writes
}

// Do decides t by fence.Admit and applies it: the marks that its claims raise
// and its writes, durable when Do returns nil.
//
// fn, which may be nil, makes the writes instead of t. It runs on the caller's
// goroutine, on the state that t is decided on, and writes to the Tx that it
// gets, which has the claims of t. It may run more than once, each time with a
// new Tx. If it returns an error, which becomes a *FuncError, or panics or calls
// runtime.Goexit, nothing is applied, and nothing stays locked.
//
// Every error but one over ErrUnknownOutcome means that nothing was applied. If
// ctx ends before the commit has begun, nothing is applied and the error is over
// ctx.Err(); if the claims alone are more than MaxPending it is over ErrTooLarge.
// A Tx is used for one Do, and again if that ended with an *UnansweredError.
func (e *Engine) Do(ctx context.Context, t *Tx, fn func(*Tx) error) (Report, error) {
	if err := t.Fits(); err != nil {
		return Report{}, err
	}
	r := &request{ctx: ctx, tx: t, fn: fn}
	if fn == nil && e.queue.tryAlone() {
		defer e.queue.leave()
		e.attempt([]*request{r})
		return r.outcome()
	}
	e.queue.add(r)
	ended := ctx.Done()
	for {
		select {
		case <-r.done:
			return r.outcome()
		case s := <-r.turn:
			r.run(s)
		case <-ended:
			if e.queue.withdraw(r) {
				return Report{}, notApplied(ctx)
			}
			ended = nil // from here on the outcome is awaited
		}
	}
}

// Refused returns the refusal of the first claim that the durable marks refuse.
// Most refusals are found here: asked before Do, it keeps a stale writer from
// making a good one wait. nil admits nothing, Do decides.
func (e *Engine) Refused(claims ...Claim) error {
	if err := e.usable(); err != nil {
		return err
	}
	for i, c := range claims {
		m, found := e.marks.get(c.Resource)
		if !found {
			return e.refusedByFile(claims[i:])
		}
		if _, err := fence.Admit(c.Resource, c.Token, m); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) refusedByFile(claims []Claim) error {
	return e.View(func(s *Snapshot) error {
		for _, c := range claims {
			m, err := s.Mark(c.Resource)
			if err != nil {
				return err
			}
			e.marks.put(c.Resource, m, s.id)
			if _, err := fence.Admit(c.Resource, c.Token, m); err != nil {
				return err
			}
		}
		return nil
	})
}

// Raises decides a claim on the durable mark, which it returns too: whether it
// would raise it, or its refusal.
func (e *Engine) Raises(c Claim) (m fence.Mark, raise bool, err error) {
	if err := e.usable(); err != nil {
		return m, false, err
	}
	m, found := e.marks.get(c.Resource)
	if !found {
		err = e.View(func(s *Snapshot) error {
			m, err = s.Mark(c.Resource)
			e.marks.put(c.Resource, m, s.id)
			return err
		})
		if err != nil {
			return m, false, err
		}
	}
	raise, err = fence.Admit(c.Resource, c.Token, m)
	return m, raise, err
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
