package engine

import (
	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// bucket is a bucket of a snapshot.
//
// What the last commit left is read with a boltfile.Tree, also in a write
// transaction until it writes to the bucket. bbolt believes every page that it
// comes to, so from then on each page is looked at before bbolt follows it.
type bucket struct {
	name string
	tree boltfile.Tree

	written *bbolt.Bucket // nil until the transaction writes to it
	check   *boltfile.PageCheck
}

// write makes the bucket one that can be written to. root is the one that it is in.
func (b *bucket) write(tx *bbolt.Tx, root *boltfile.PageCheck) error {
	name := []byte(b.name)
	if err := root.Path(name); err != nil {
		return err
	}
	b.check, b.written = boltfile.NewPageCheck(b.tree), tx.Bucket(name)
	return nil
}

// Get returns a record, nil if there is none. It is memory of the file.
func (b *bucket) Get(key []byte) (record []byte, err error) {
	if b.written == nil {
		record, _, err = b.tree.Get(key)
		return record, err
	}
	record, changed, err := b.check.Get(key)
	if changed {
		record = b.written.Get(key)
	}
	return record, err
}

// Put stores a record. Both it and Delete come after write.
func (b *bucket) Put(key, record []byte) error {
	if err := b.check.Put(key); err != nil {
		return err
	}
	return b.written.Put(key, record)
}

// Delete removes a record.
func (b *bucket) Delete(key []byte) error {
	if err := b.check.Delete(key); err != nil {
		return err
	}
	return b.written.Delete(key)
}

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
		return &writtenCursor{check: b.check, c: b.written.Cursor()}
	}
	c := b.tree.Cursor()
	return &c
}

// writtenCursor is bbolt's. From the end only First, Last and Seek lead on.
type writtenCursor struct {
	check *boltfile.PageCheck
	c     *bbolt.Cursor
	at    []byte // the key where it stands, nil at the end
}

func (w *writtenCursor) First() (key, record []byte, err error) {
	return w.to(w.check.Around(nil), w.c.First)
}

// Last looks for a first key before: if all leaves are empty bbolt's Last never ends.
func (w *writtenCursor) Last() (key, record []byte, err error) {
	if w.check.Shrunk() > 0 {
		if key, _, err = w.First(); key == nil || err != nil {
			return nil, nil, err
		}
	}
	return w.to(w.check.Last(), w.c.Last)
}

func (w *writtenCursor) Seek(key []byte) (k, record []byte, err error) {
	return w.to(w.check.Around(key), func() (k, record []byte) { return w.c.Seek(key) })
}

func (w *writtenCursor) Next() (key, record []byte, err error) { return w.from(w.c.Next) }

// Prev goes on where bbolt's says that there is nothing: in a leaf from which
// everything was deleted. Before the first key it finds nothing, however often it
// is asked.
func (w *writtenCursor) Prev() (key, record []byte, err error) {
	return w.from(func() (k, record []byte) {
		k, record = w.c.Prev()
		for n := w.check.Shrunk(); k == nil && n > 0; n-- {
			k, record = w.c.Prev()
		}
		return k, record
	})
}

func (w *writtenCursor) from(move func() (k, record []byte)) (key, record []byte, err error) {
	if w.at == nil {
		return nil, nil, nil
	}
	return w.to(w.check.Around(w.at), move)
}

func (w *writtenCursor) to(err error, move func() (k, record []byte)) (key, record []byte, _ error) {
	if err != nil {
		w.at = nil
		return nil, nil, err
	}
	key, record = move()
	w.at = key
	return key, record, nil
}
