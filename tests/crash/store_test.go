package crash_test

import (
	"context"
	"errors"
	"slices"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// store is what crashes: ours, or a toy.
type store interface {
	write(writes ...note) error // one transaction, of one key of each resource
	get(resource, key string) (string, error)
	highest(resource string) (fence.Token, error)
	check() error
	close() error
}

// opener opens the store of one kind.
type opener func(path string) (store, error)

// ours is the store that the tests are for.
type ours struct{ *fencedkv.Store }

func openOurs(path string) (store, error) {
	s, err := fencedkv.Open(path, nil)
	if err != nil {
		return nil, err
	}
	return ours{s}, nil
}

func (s ours) write(writes ...note) error {
	ctx, w := context.Background(), writes[0]
	if len(writes) == 1 {
		if w.key == "-" {
			return s.Resource(w.resource).Raise(ctx, named(w.seq))
		}
		return s.Resource(w.resource).Put(ctx, named(w.seq), []byte(w.key), []byte(w.content()))
	}
	var claims []fencedkv.Claim
	for _, w := range writes {
		claims = append(claims, fencedkv.Claim{Resource: w.resource, Token: named(w.seq)})
	}
	return s.Update(ctx, claims, func(_ context.Context, tx *fencedkv.MultiTx) error {
		for _, w := range slices.Backward(writes) {
			one, err := tx.Resource(w.resource)
			if err != nil {
				return err
			}
			if err := one.Put([]byte(w.key), []byte(w.content())); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s ours) get(resource, key string) (string, error) {
	v, err := s.Resource(resource).Get(context.Background(), []byte(key))
	if errors.Is(err, fencedkv.ErrNotFound) {
		return "", nil
	}
	return string(v), err
}

func (s ours) highest(resource string) (fence.Token, error) {
	m, err := s.Resource(resource).Highest(context.Background())
	return m.Token, err
}

func (s ours) check() error { return s.Check(context.Background()) }
func (s ours) close() error { return s.Close() }
