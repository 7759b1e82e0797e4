package fencedkv

import (
	"context"
	"iter"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// ResourceInfo is one resource of a store.
type ResourceInfo struct {
	Name    string
	Highest fence.Mark // never zero: a resource begins with the first token admitted
}

// Resources returns all resources in order of their names, those without a key
// included. It reads in pages and holds nothing while the loop's body runs, which
// may therefore take its time and call the store. A resource that was there when
// the loop began is returned once; one that is created meanwhile may be. An error
// ends the sequence.
func (s *Store) Resources(ctx context.Context) iter.Seq2[ResourceInfo, error] {
	const perPage = 256
	return func(yield func(ResourceInfo, error) bool) {
		for after := ""; ; {
			var page []engine.Marked
			err := s.view(ctx, func(snap *engine.Snapshot) (err error) {
				page, err = snap.Marks(after, perPage)
				return err
			})
			if err != nil {
				yield(ResourceInfo{}, err)
				return
			}
			for _, m := range page {
				if !yield(ResourceInfo{Name: m.Resource, Highest: m.Mark}, nil) {
					return
				}
				after = m.Resource
			}
			if len(page) < perPage {
				return
			}
		}
	}
}
