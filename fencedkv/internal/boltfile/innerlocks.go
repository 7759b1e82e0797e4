package boltfile

import (
	"reflect"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// A panic in DB.Begin, which reads the meta pages through the mapping, leaves
// bbolt's own mutexes locked, and every later call would wait for ever: those
// that end a transaction and DB.Close too. bbolt has no way to give them back,
// so these functions reach for its fields. The goroutine that calls them is the
// one that holds the mutexes: in bbolt 1.5 nothing of DB.beginTx can panic
// before both are locked, or after one is released. A test fails if a field is
// not there.

// freeReadBegin gives back what a panicked DB.Begin(false) holds.
func freeReadBegin(db *bolt.DB) {
	if l := innerLock[sync.RWMutex](db, "mmaplock"); l != nil {
		l.RUnlock()
	}
	if l := innerLock[sync.Mutex](db, "metalock"); l != nil {
		l.Unlock()
	}
}

// freeWriter gives back what a panicked DB.Begin(true), or a write transaction
// that panicked before it was closed, holds.
func freeWriter(db *bolt.DB) {
	if l := innerLock[sync.Mutex](db, "rwlock"); l != nil {
		l.Unlock()
	}
}

// innerLock returns a field of db, nil if db has none of that name and type.
func innerLock[T any](db *bolt.DB, name string) *T {
	f := reflect.ValueOf(db).Elem().FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(f.Addr().UnsafePointer())
}
