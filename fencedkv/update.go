package fencedkv

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// Update checks t, runs fn and applies what fn wrote, in one transaction: no
// other write comes between the check, the reads of fn and its writes. When it
// returns nil, the writes and the raised mark are durable.
//
// fn runs on the goroutine of its caller, may run more than once, and touches
// nothing but tx. If it returns an error, Update returns that error as it is and
// applies nothing, the raise included. A panic or runtime.Goexit in fn applies
// nothing either and goes on in the caller once the commit that it took part in
// has ended; what such a function has read may include writes that were then not
// applied, because it cannot run again. ctx must not have ended when fn
// returns; the context that fn gets makes every call of this store ErrNested, and
// so does its goroutine with any context.
//
// While fn runs the store's other writers wait, and its readers do not.
func (r *Resource) Update(ctx context.Context, t fence.Token, fn func(ctx context.Context, tx *Tx) error) error {
	if err := r.check(); err != nil {
		return err
	}
	if fn == nil {
		return errNoFunction
	}
	claim := engine.Claim{Resource: r.name, Token: t}
	if err := r.store.beginWrite(ctx, claim); err != nil {
		return err
	}
	defer r.store.leave()
	return r.store.do(ctx, engine.NewTx(claim), func(ctx context.Context, etx *engine.Tx) error {
		return fn(ctx, &Tx{tx: etx, resource: r.name, token: t})
	})
}

// View runs fn on a snapshot of the resource. Writers do not wait for it, but
// for one thing: where address space cannot be reserved (32-bit and Windows) a
// commit that must grow the file waits for open snapshots, and a snapshot
// everywhere keeps the space of what was overwritten since from being used
// again. So fn should be brief. Its error is returned as it is.
//
// The context that fn gets makes every call of this store ErrNested, and so does
// its goroutine with any context.
func (r *Resource) View(ctx context.Context, fn func(ctx context.Context, tx *ReadTx) error) error {
	if err := r.check(); err != nil {
		return err
	}
	if fn == nil {
		return errNoFunction
	}
	var own error
	err := r.store.view(ctx, func(s *engine.Snapshot) error {
		own = r.store.within(ctx, func(ctx context.Context) error {
			return fn(ctx, &ReadTx{snap: s, resource: r.name})
		})
		return own
	})
	if own != nil {
		return own
	}
	return err
}

// Claim is a token offered to a resource, for Store.Update.
type Claim struct {
	Resource string
	Token    fence.Token
}

// MultiTx is a transaction on the resources of several claims, within the
// function of Store.Update.
type MultiTx struct{ tx *engine.Tx }

// Resource returns the transaction on one of the claimed resources, or an error
// over ErrNotClaimed.
func (t *MultiTx) Resource(name string) (*Tx, error) {
	if t == nil || t.tx == nil {
		return nil, ErrTxDone
	}
	token, err := t.tx.Claimed(name)
	if err != nil {
		return nil, err
	}
	return &Tx{tx: t.tx, resource: name, token: token}, nil
}

// Update is Resource.Update for several resources of the store at once: all
// writes and all raises are applied, or none. The claims are checked in order of
// their names, and the first refusal is returned. They name at least one
// resource and none twice, and count in MaxTransaction.
//
// All tokens are usually of locks that the caller holds at the same time. To
// avoid deadlocks between holders, acquire them in one order.
func (s *Store) Update(ctx context.Context, claims []Claim, fn func(ctx context.Context, tx *MultiTx) error) error {
	if fn == nil {
		return errNoFunction
	}
	sorted, err := sortClaims(claims)
	if err != nil {
		return err
	}
	if err := s.beginWrite(ctx, sorted...); err != nil {
		return err
	}
	defer s.leave()
	return s.do(ctx, engine.NewTx(sorted...), func(ctx context.Context, etx *engine.Tx) error { return fn(ctx, &MultiTx{tx: etx}) })
}

func sortClaims(claims []Claim) ([]engine.Claim, error) {
	if len(claims) == 0 {
		return nil, &ArgumentError{Argument: "claims", Problem: "are none; name each resource that the function writes"}
	}
	sorted := make([]engine.Claim, 0, len(claims))
	for _, c := range claims {
		if err := checkResource(c.Resource); err != nil {
			return nil, err
		}
		sorted = append(sorted, engine.Claim{Resource: c.Resource, Token: c.Token})
	}
	slices.SortFunc(sorted, func(a, b engine.Claim) int { return strings.Compare(a.Resource, b.Resource) })
	for i, c := range sorted[1:] {
		if c.Resource == sorted[i].Resource {
			return nil, &ArgumentError{Argument: "claims", Problem: fmt.Sprintf("name %q twice", c.Resource)}
		}
	}
	return sorted, nil
}
