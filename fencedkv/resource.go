package fencedkv

import (
	"context"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// Resource is what one lock guards: a set of keys, and the highest token that
// was admitted to write them. Its methods may be called concurrently.
//
// Writes take a token. A token that the rule of package fence refuses gives a
// *fence.RejectedError, and nothing is written.
type Resource struct {
	store *Store
	name  string
}

// Name returns the name of the resource.
func (r *Resource) Name() string {
	if r == nil {
		return ""
	}
	return r.name
}

// Raise makes t the highest token admitted. When it returns nil, that is
// durable, and every older token is shut out. It is the first step of a new
// holder, before it reads what it will later write: otherwise a late write of
// the old holder can land between the read and the new holder's first write.
func (r *Resource) Raise(ctx context.Context, t fence.Token) error {
	return r.write(ctx, t, nil, func(*engine.Tx) error { return nil })
}

// Put stores a copy of value under key, and raises the mark to t if t is higher.
// When it returns nil, both are durable.
func (r *Resource) Put(ctx context.Context, t fence.Token, key, value []byte) error {
	return r.write(ctx, t, checkPair(key, value), func(tx *engine.Tx) error { return tx.Put(r.name, key, value) })
}

// Delete removes key, if it is there, and raises the mark to t if t is higher.
// When it returns nil, both are durable. The mark outlives the last key.
func (r *Resource) Delete(ctx context.Context, t fence.Token, key []byte) error {
	return r.write(ctx, t, checkKey(key), func(tx *engine.Tx) error { return tx.Delete(r.name, key) })
}

// Get returns a copy of the value under key, or ErrNotFound. It takes no token:
// what it returns may be overwritten before the caller looks at it. A holder
// that acts on what it reads calls Raise first, or reads in Update.
func (r *Resource) Get(ctx context.Context, key []byte) (value []byte, err error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if err := r.store.enter(ctx); err != nil {
		return nil, err
	}
	defer r.store.leave()
	value, err = r.store.engine.Get(r.name, key)
	return value, public(err)
}

// Highest returns the highest token that was admitted and when it arrived, the
// zero Mark if none was.
func (r *Resource) Highest(ctx context.Context) (m fence.Mark, err error) {
	if err := r.check(); err != nil {
		return fence.Mark{}, err
	}
	err = r.store.view(ctx, func(s *engine.Snapshot) error {
		m, err = s.Mark(r.name)
		return err
	})
	return m, err
}

// write decides and applies a transaction whose writes are known beforehand.
// bad is what is wrong with their arguments.
func (r *Resource) write(ctx context.Context, t fence.Token, bad error, fill func(*engine.Tx) error) error {
	if err := r.check(); err != nil {
		return err
	}
	if bad != nil {
		return bad
	}
	claim := engine.Claim{Resource: r.name, Token: t}
	if err := r.store.beginWrite(ctx, claim); err != nil {
		return err
	}
	defer r.store.leave()
	tx := engine.NewTx(claim)
	if err := fill(tx); err != nil {
		return public(err)
	}
	return r.store.do(ctx, tx, nil)
}

func (r *Resource) check() error {
	if r == nil || r.store == nil {
		return &ArgumentError{Argument: "resource", Problem: "is of no store; use Store.Resource"}
	}
	return checkResource(r.name)
}
