package contestant

import (
	"context"
	"errors"

	"github.com/dgraph-io/badger/v4"
)

type badgerStore struct{ db *badger.DB }

// OpenBadger is an Open, with SyncWrites.
func OpenBadger(dir string) (Store, error) {
	db, err := badger.Open(badger.DefaultOptions(dir).WithSyncWrites(true).WithLogger(nil))
	if err != nil {
		return nil, err
	}
	return &badgerStore{db}, nil
}

func (b *badgerStore) Put(_ context.Context, key Key, value []byte) error {
	return b.db.Update(func(txn *badger.Txn) error { return txn.Set(key.Whole, value) })
}

func (b *badgerStore) Get(_ context.Context, key Key) (value []byte, err error) {
	err = b.db.View(func(txn *badger.Txn) error {
		item, err := txn.Get(key.Whole)
		if err != nil {
			return err
		}
		value, err = item.ValueCopy(nil)
		return err
	})
	if errors.Is(err, badger.ErrKeyNotFound) {
		err = missing(key)
	}
	return value, err
}

func (b *badgerStore) Load(_ context.Context, pairs []Pair) error {
	batch := b.db.NewWriteBatch()
	defer batch.Cancel()
	for _, p := range pairs {
		if err := batch.Set(p.Key.Whole, p.Value); err != nil {
			return err
		}
	}
	return batch.Flush()
}

func (b *badgerStore) Close() error { return b.db.Close() }
