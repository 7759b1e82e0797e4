package boltfile

import (
	bolt "go.etcd.io/bbolt"
)

// State is a durable state of the file that is held open for reading.
type State struct {
	file *File
	tx   *bolt.Tx
	root Tree
}

// Acquire returns the last durable state, until Release.
func (f *File) Acquire() (*State, error) {
	tx, err := f.Begin(false)
	if err != nil {
		return nil, err
	}
	root, err := f.Base(tx)
	if err != nil {
		_ = f.Rollback(tx) // the damage says more
		return nil, err
	}
	return &State{file: f, tx: tx, root: root}, nil
}

// Release ends the use of a State. The error is one of bbolt's transaction.
func (s *State) Release() error { return s.file.Rollback(s.tx) }

// ID returns the number of the transaction that made the state.
func (s *State) ID() int { return s.tx.ID() }

// Root returns the root bucket.
func (s *State) Root() Tree { return s.root }

// Base returns the root bucket as the last commit left it: what tx, which may be
// a write transaction, stands on.
func (f *File) Base(tx *bolt.Tx) (root Tree, err error) {
	err = Guard(f.path, func() error {
		in, id := pagesOf(f.path, tx)
		root = Tree{in: in, root: id}
		return nil
	})
	return root, err
}
