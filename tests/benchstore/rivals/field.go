package rivals

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fencedkv/fencedkv/tests/benchstore/contestant"
)

// field is every contestant's open store, with its keys in it.
type field struct {
	stores map[string]contestant.Store
	hot    chooser
	dir    string
	each   int // keys of a resource of the large files
}

// newField opens and fills the stores in dir.
func newField(ctx context.Context, dir string, each int, seed uint64) (*field, error) {
	keys := hot()
	f := &field{stores: map[string]contestant.Store{}, hot: oneOf(keys), dir: dir, each: each}
	for _, c := range contestant.All {
		s, err := c.Open(filepath.Join(dir, c.Name))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", c.Name, err), f.close())
		}
		f.stores[c.Name] = s
		if err := load(ctx, s, len(keys), func(i int) contestant.Key { return keys[i] }, seed); err != nil {
			return nil, errors.Join(fmt.Errorf("load %s: %w", c.Name, err), f.close())
		}
	}
	for _, open := range []contestant.Open{contestant.OpenOurs, contestant.OpenBolt} {
		if err := f.fillLarge(ctx, open, seed); err != nil {
			return nil, errors.Join(fmt.Errorf("load the large file: %w", err), f.close())
		}
	}
	return f, nil
}

func (f *field) large() string { return filepath.Join(f.dir, "large") }

func (f *field) fillLarge(ctx context.Context, open contestant.Open, seed uint64) error {
	s, err := open(f.large())
	if err != nil {
		return err
	}
	key := func(i int) contestant.Key { return spreadKey(i, f.each) }
	return errors.Join(load(ctx, s, spreadResources*f.each, key, seed), s.Close())
}

func (f *field) ours() *contestant.Ours { return f.stores["ours"].(*contestant.Ours) }

func (f *field) close() error {
	var all error
	for name, s := range f.stores {
		if err := s.Close(); err != nil {
			all = errors.Join(all, fmt.Errorf("close %s: %w", name, err))
		}
	}
	return all
}
