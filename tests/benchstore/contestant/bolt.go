package contestant

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
)

var bucket = []byte("kv")

// bare is bbolt without anything on top. Its writes are Updates, or Batches if
// batch is set.
type bare struct {
	db    *bolt.DB
	batch bool
}

// OpenBolt is an Open. Each write is one Update.
func OpenBolt(dir string) (Store, error) { return openBolt(dir, 0) }

// OpenBatch10 is an Open. Writes go through DB.Batch with its default delay.
func OpenBatch10(dir string) (Store, error) { return openBolt(dir, 10*time.Millisecond) }

// OpenBatch1 is an Open. Writes go through DB.Batch with a delay of 1 ms.
func OpenBatch1(dir string) (Store, error) { return openBolt(dir, time.Millisecond) }

func openBolt(dir string, delay time.Duration) (Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	db, err := bolt.Open(filepath.Join(dir, "bolt.db"), 0o600, BoltOptions())
	if err != nil {
		return nil, err
	}
	if delay > 0 {
		db.MaxBatchDelay = delay
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	if err != nil {
		db.Close()
		return nil, err
	}
	return &bare{db: db, batch: delay > 0}, nil
}

// BoltOptions are bbolt's defaults with a finite wait for the lock and the free
// list that this project uses too, which is the faster one.
func BoltOptions() *bolt.Options {
	o := *bolt.DefaultOptions
	o.Timeout = time.Second
	o.FreelistType = bolt.FreelistMapType
	return &o
}

func (b *bare) Put(_ context.Context, key Key, value []byte) error {
	put := func(tx *bolt.Tx) error { return tx.Bucket(bucket).Put(key.Whole, value) }
	if b.batch {
		return b.db.Batch(put)
	}
	return b.db.Update(put)
}

func (b *bare) Get(_ context.Context, key Key) (value []byte, err error) {
	err = b.db.View(func(tx *bolt.Tx) error {
		value = bytes.Clone(tx.Bucket(bucket).Get(key.Whole))
		return nil
	})
	if err == nil && value == nil {
		err = missing(key)
	}
	return value, err
}

func (b *bare) Load(_ context.Context, pairs []Pair) error {
	return b.db.Update(func(tx *bolt.Tx) error {
		kv := tx.Bucket(bucket)
		for _, p := range pairs {
			if err := kv.Put(p.Key.Whole, p.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bare) Close() error { return b.db.Close() }
