package contestant

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

type pebbleStore struct{ db *pebble.DB }

// OpenPebble is an Open. Each write is a Set with pebble.Sync.
func OpenPebble(dir string) (Store, error) {
	db, err := pebble.Open(dir, &pebble.Options{Logger: silent{}})
	if err != nil {
		return nil, err
	}
	return &pebbleStore{db}, nil
}

func (p *pebbleStore) Put(_ context.Context, key Key, value []byte) error {
	return p.db.Set(key.Whole, value, pebble.Sync)
}

func (p *pebbleStore) Get(_ context.Context, key Key) ([]byte, error) {
	value, closer, err := p.db.Get(key.Whole)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, missing(key)
	}
	if err != nil {
		return nil, err
	}
	value = bytes.Clone(value)
	return value, closer.Close()
}

func (p *pebbleStore) Load(_ context.Context, pairs []Pair) error {
	batch := p.db.NewBatch()
	for _, pair := range pairs {
		if err := batch.Set(pair.Key.Whole, pair.Value, nil); err != nil {
			return err
		}
	}
	return batch.Commit(pebble.Sync)
}

func (p *pebbleStore) Close() error { return p.db.Close() }

// silent is a logger for stores that tell what they compact.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}

// Fatalf must not return.
func (silent) Fatalf(format string, args ...any) { pebble.DefaultLogger.Fatalf(format, args...) }
