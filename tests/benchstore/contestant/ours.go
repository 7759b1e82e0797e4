package contestant

import (
	"context"
	"os"
	"path/filepath"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Good is the token that Ours writes with, and Stale one that it refuses.
var (
	Good  = fence.Number(34)
	Stale = fence.Number(33)
)

// Ours is this project's store, through its public functions.
type Ours struct{ Store *fencedkv.Store }

// OpenOurs is an Open.
func OpenOurs(dir string) (Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s, err := fencedkv.Open(OursPath(dir), nil)
	if err != nil {
		return nil, err
	}
	return &Ours{s}, nil
}

// OursPath is the file that OpenOurs opens.
func OursPath(dir string) string { return filepath.Join(dir, "ours.db") }

// Put writes with Good.
func (o *Ours) Put(ctx context.Context, key Key, value []byte) error {
	return o.Store.Resource(key.Resource).Put(ctx, Good, key.Key, value)
}

// PutStale writes with Stale.
func (o *Ours) PutStale(ctx context.Context, key Key, value []byte) error {
	return o.Store.Resource(key.Resource).Put(ctx, Stale, key.Key, value)
}

// Get is a Resource.Get.
func (o *Ours) Get(ctx context.Context, key Key) ([]byte, error) {
	return o.Store.Resource(key.Resource).Get(ctx, key.Key)
}

// Load raises the mark of each resource to Good.
func (o *Ours) Load(ctx context.Context, pairs []Pair) error {
	var claims []fencedkv.Claim
	for i, p := range pairs {
		if i == 0 || pairs[i-1].Key.Resource != p.Key.Resource {
			claims = append(claims, fencedkv.Claim{Resource: p.Key.Resource, Token: Good})
		}
	}
	return o.Store.Update(ctx, claims, func(_ context.Context, tx *fencedkv.MultiTx) error {
		for _, p := range pairs {
			resource, err := tx.Resource(p.Key.Resource)
			if err != nil {
				return err
			}
			if err := resource.Put(p.Key.Key, p.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close closes the store.
func (o *Ours) Close() error { return o.Store.Close() }
