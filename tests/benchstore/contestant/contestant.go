package contestant

import (
	"context"
	"fmt"
)

// Store is one contestant's open store. Its methods may be called concurrently,
// but for Close.
type Store interface {
	// Put replaces the value of a key. It is durable when Put returns.
	Put(ctx context.Context, key Key, value []byte) error

	// Get returns a copy of the value of a key, or an error if there is none.
	Get(ctx context.Context, key Key) ([]byte, error)

	// Load puts pairs, in order of Key.Whole, in one transaction, or in the few
	// that the store's limits make of them. They are durable when it returns.
	Load(ctx context.Context, pairs []Pair) error

	Close() error
}

// Open opens a contestant's store in a directory of its own, which it creates.
type Open func(dir string) (Store, error)

// Key is a key of a resource, and the two as one for stores that have no
// resources.
type Key struct {
	Resource string
	Key      []byte
	Whole    []byte
}

// NewKey returns a Key.
func NewKey(resource, key string) Key {
	return Key{Resource: resource, Key: []byte(key), Whole: []byte(resource + "/" + key)}
}

// Pair is a key and its value.
type Pair struct {
	Key   Key
	Value []byte
}

// All are the contestants by name; the first is this project's store.
var All = []struct {
	Name string
	Open Open
}{
	{"ours", OpenOurs},
	{"bolt", OpenBolt},
	{"batch10", OpenBatch10},
	{"batch1", OpenBatch1},
	{"pebble", OpenPebble},
	{"badger", OpenBadger},
	{"sqlite", OpenSQLite},
}

func missing(key Key) error { return fmt.Errorf("no key %q", key.Whole) }
