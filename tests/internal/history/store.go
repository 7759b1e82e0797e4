package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Subject is what a history is recorded of: the store, or a toy with a flaw.
type Subject interface {
	Perform(ctx context.Context, o Operation) Result
}

// Store is the store as a Subject.
type Store struct{ *fencedkv.Store }

var (
	errOwn   = errors.New("own")
	errPanic = errors.New("panic")
	reasons  = []error{fence.ErrNoToken, fence.ErrLineage, fence.ErrStale, fence.ErrCollision}
)

// Perform makes the call. It may be called concurrently.
func (s Store) Perform(ctx context.Context, o Operation) Result {
	if o.Cancelled {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go cancel()
	}
	var r Result
	err := s.call(ctx, o, &r)
	r.Outcome = Done
	if err != nil {
		r = failure(err, r)
	}
	return r
}

func (s Store) call(ctx context.Context, o Operation, r *Result) (err error) {
	res, key := s.Resource(NameOf("resource", o.Resource)), []byte(NameOf("key", o.Key))
	switch o.Kind {
	case Raise:
		return res.Raise(ctx, o.Token)
	case Put:
		return res.Put(ctx, o.Token, key, []byte(o.Value))
	case Delete:
		return res.Delete(ctx, o.Token, key)
	case Update, Fails, Panics:
		return s.update(ctx, o, r)
	case Move:
		return s.move(ctx, o, r)
	case Get:
		r.Values[o.Key], err = value(res.Get(ctx, key))
		return err
	case Highest:
		m, err := res.Highest(ctx)
		r.Mark = m.Token
		return err
	case View:
		return res.View(ctx, func(_ context.Context, tx *fencedkv.ReadTx) error { return look(tx, r) })
	}
	return fmt.Errorf("no operation %q", o.Kind)
}

// update is a read and a write of one key.
func (s Store) update(ctx context.Context, o Operation, r *Result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(error)
		}
	}()
	res, key := s.Resource(NameOf("resource", o.Resource)), []byte(NameOf("key", o.Key))
	return res.Update(ctx, o.Token, func(_ context.Context, tx *fencedkv.Tx) (err error) {
		if r.Values[o.Key], err = value(tx.Get(key)); err != nil {
			return err
		}
		if err := tx.Put(key, []byte(o.Value)); err != nil {
			return err
		}
		switch o.Kind {
		case Fails:
			return errOwn
		case Panics:
			panic(errPanic)
		}
		return nil
	})
}

// move is a read and a write of one key of two resources.
func (s Store) move(ctx context.Context, o Operation, r *Result) error {
	first, second := NameOf("resource", o.Resource), NameOf("resource", o.Other)
	key := []byte(NameOf("key", o.Key))
	claims := []fencedkv.Claim{{Resource: second, Token: o.OtherToken}, {Resource: first, Token: o.Token}}
	return s.Update(ctx, claims, func(_ context.Context, tx *fencedkv.MultiTx) error {
		for name, read := range map[string]*string{first: &r.Values[o.Key], second: &r.Other} {
			one, err := tx.Resource(name)
			if err != nil {
				return err
			}
			if *read, err = value(one.Get(key)); err != nil {
				return err
			}
			if err := one.Put(key, []byte(o.Value)); err != nil {
				return err
			}
		}
		return nil
	})
}

// look reads a whole resource.
func look(tx *fencedkv.ReadTx, r *Result) error {
	m, err := tx.Highest()
	if err != nil {
		return err
	}
	r.Mark = m.Token
	for kv, err := range tx.Scan(fencedkv.Range{}) {
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(strings.TrimPrefix(string(kv.Key), "key"))
		if err != nil {
			return err
		}
		r.Values[n] = string(kv.Value)
	}
	return nil
}

// value makes an absent value "".
func value(v []byte, err error) (string, error) {
	if errors.Is(err, fencedkv.ErrNotFound) {
		return "", nil
	}
	return string(v), err
}

// failure says what an error promises. What the function had read when the
// transaction failed is part of the history only if its own error ended it.
func failure(err error, read Result) Result {
	if rejected, ok := errors.AsType[*fence.RejectedError](err); ok {
		r := Result{Outcome: Refused, Mark: rejected.Mark.Token, Detail: err.Error()}
		r.Resource, _ = strconv.Atoi(strings.TrimPrefix(rejected.Resource, "resource"))
		for _, reason := range reasons {
			if errors.Is(err, reason) {
				r.Reason = reason.Error()
			}
		}
		return r
	}
	switch {
	case errors.Is(err, errPanic):
		return Result{Outcome: Own} // what it has read is no promise
	case errors.Is(err, errOwn):
		read.Outcome = Own
		return read
	case errors.Is(err, fencedkv.ErrUnknownOutcome):
		return Result{Outcome: Unknown, Detail: err.Error()}
	case errors.Is(err, context.Canceled):
		return Result{Outcome: NotApplied, Detail: err.Error()}
	}
	return Result{Outcome: "error", Detail: err.Error()} // no history of a sound device has one
}
