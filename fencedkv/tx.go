package fencedkv

import (
	"iter"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// KV is a key and its value. Both are copies that belong to the receiver.
type KV struct{ Key, Value []byte }

// Range selects keys: those that begin with Prefix and lie in [Start, End). An
// empty bound is no bound, so the zero Range is all keys. Keys come in the order
// of their bytes, with Reverse in the opposite one.
type Range struct {
	Prefix  []byte
	Start   []byte // the lowest key
	End     []byte // the first key above; not part of the range
	Reverse bool
	Limit   int // at most so many keys; 0 is no limit
}

// Tx is a transaction on one resource, within the function of Update. Its writes
// wait in memory until the function returns nil. Its methods may be called
// concurrently; after the function has returned they return ErrTxDone.
type Tx struct {
	tx       *engine.Tx
	resource string
	token    fence.Token
}

// Resource returns the name of the resource.
func (t *Tx) Resource() string { return t.resource }

// Token returns the token that the transaction writes with.
func (t *Tx) Token() fence.Token { return t.token }

// Get returns a copy of the value under key as the transaction leaves it, or
// ErrNotFound.
func (t *Tx) Get(key []byte) ([]byte, error) {
	if t == nil || t.tx == nil {
		return nil, ErrTxDone
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	value, err := t.tx.Get(t.resource, key)
	return value, public(err)
}

// Put stores a copy of value under key. It is a *LimitError if key or value is
// too large, or if the transaction would pass MaxTransaction; the transaction is
// then as it was before.
func (t *Tx) Put(key, value []byte) error {
	if t == nil || t.tx == nil {
		return ErrTxDone
	}
	if err := checkPair(key, value); err != nil {
		return err
	}
	return public(t.tx.Put(t.resource, key, value))
}

// Delete removes key, if it is there.
func (t *Tx) Delete(key []byte) error {
	if t == nil || t.tx == nil {
		return ErrTxDone
	}
	if err := checkKey(key); err != nil {
		return err
	}
	return public(t.tx.Delete(t.resource, key))
}

// Scan returns the keys of a range and their values as the transaction leaves
// them. The loop may write: what it puts or deletes ahead of its position is
// seen, what lies behind is not. An error ends the sequence.
func (t *Tx) Scan(r Range) iter.Seq2[KV, error] {
	if t == nil || t.tx == nil {
		return failed(ErrTxDone)
	}
	return scan(r, func(er engine.Range) iter.Seq2[engine.KV, error] { return t.tx.Scan(t.resource, er) })
}

// ReadTx is a consistent snapshot of one resource, within the function of View.
// It sees no write that was made after the function began. Its methods may be
// called concurrently; after the function has returned they return ErrTxDone.
type ReadTx struct {
	snap     *engine.Snapshot
	resource string
}

// Resource returns the name of the resource.
func (t *ReadTx) Resource() string { return t.resource }

// Get returns a copy of the value under key, or ErrNotFound.
func (t *ReadTx) Get(key []byte) ([]byte, error) {
	if t == nil || t.snap == nil {
		return nil, ErrTxDone
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	value, err := t.snap.Get(t.resource, key)
	return value, public(err)
}

// Highest returns the highest token that was admitted, the zero Mark if none
// was.
func (t *ReadTx) Highest() (fence.Mark, error) {
	if t == nil || t.snap == nil {
		return fence.Mark{}, ErrTxDone
	}
	m, err := t.snap.Mark(t.resource)
	return m, public(err)
}

// Scan returns the keys of a range and their values. An error ends the sequence.
func (t *ReadTx) Scan(r Range) iter.Seq2[KV, error] {
	if t == nil || t.snap == nil {
		return failed(ErrTxDone)
	}
	return scan(r, func(er engine.Range) iter.Seq2[engine.KV, error] { return t.snap.Scan(t.resource, er) })
}

func failed(err error) iter.Seq2[KV, error] {
	return func(yield func(KV, error) bool) { yield(KV{}, err) }
}

func scan(r Range, in func(engine.Range) iter.Seq2[engine.KV, error]) iter.Seq2[KV, error] {
	if r.Limit < 0 {
		return failed(&ArgumentError{Argument: "Range.Limit", Problem: "is negative; 0 is no limit"})
	}
	return func(yield func(KV, error) bool) {
		left := r.Limit
		er := engine.Range{Prefix: r.Prefix, Start: r.Start, End: r.End, Reverse: r.Reverse}
		for kv, err := range in(er) {
			if !yield(KV(kv), public(err)) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}
