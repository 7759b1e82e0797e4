package engine

import (
	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// bucket is a bucket of a snapshot.
//
// What the last commit left is read with a boltfile.Tree. bbolt believes every
// page that it comes to, and follows page numbers that lead in a circle until the
// process ends. It is asked only for what this transaction has written.
type bucket struct {
	tree    boltfile.Tree
	written *bbolt.Bucket // of a write transaction; nil if there is none
}

// Get returns a record, nil if there is none. It is memory of the file.
func (b *bucket) Get(key []byte) (record []byte, err error) {
	if b.written != nil {
		return b.written.Get(key), nil
	}
	record, _, err = b.tree.Get(key)
	return record, err
}

// Put stores a record in the write transaction.
func (b *bucket) Put(key, record []byte) error { return b.written.Put(key, record) }

// Delete removes a record in the write transaction.
func (b *bucket) Delete(key []byte) error { return b.written.Delete(key) }

// cursor moves over the records of a bucket, see boltfile.Cursor.
type cursor interface {
	First() (key, record []byte, err error)
	Last() (key, record []byte, err error)
	Seek(key []byte) (k, record []byte, err error)
	Next() (key, record []byte, err error)
	Prev() (key, record []byte, err error)
}

func (b *bucket) cursor() cursor {
	if b.written != nil {
		return writtenCursor{b.written.Cursor()}
	}
	c := b.tree.Cursor()
	return &c
}

// writtenCursor is bbolt's.
type writtenCursor struct{ *bbolt.Cursor }

func (c writtenCursor) First() (key, record []byte, err error) {
	key, record = c.Cursor.First()
	return key, record, nil
}

func (c writtenCursor) Last() (key, record []byte, err error) {
	key, record = c.Cursor.Last()
	return key, record, nil
}

func (c writtenCursor) Seek(key []byte) (k, record []byte, err error) {
	k, record = c.Cursor.Seek(key)
	return k, record, nil
}

func (c writtenCursor) Next() (key, record []byte, err error) {
	key, record = c.Cursor.Next()
	return key, record, nil
}

func (c writtenCursor) Prev() (key, record []byte, err error) {
	key, record = c.Cursor.Prev()
	return key, record, nil
}
