package fencedkv

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// OpenCommit is Open with a function in the place of bbolt's Tx.Commit.
func OpenCommit(path string, o *Options, commit func(*bbolt.Tx) error) (*Store, error) {
	return open(path, o, commit)
}

// Needless lets the next call with a token find that the mark had been raised to
// it, so that no answer is needed.
func (s *Store) Needless(resource string, t fence.Token) {
	v := s.verify
	v.mu.Lock()
	defer v.mu.Unlock()
	q := &question{matter: matter{resource, t}, cancel: func() {}, done: make(chan struct{})}
	close(q.done)
	v.asked[q.matter] = q
}

// AskLate asks about a token like a call that looked at the mark some time ago. It
// reports whether the verifiers had to be asked.
func (s *Store) AskLate(ctx context.Context, resource string, t fence.Token) (needed bool, err error) {
	q := s.verify.join(ctx, engine.Claim{Resource: resource, Token: t})
	no, err := s.verify.await(ctx, q)
	s.verify.forget(q)
	if no != nil {
		err = no
	}
	return q.needed, err
}
