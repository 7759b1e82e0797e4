package boltfile

import (
	"maps"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// State is a durable state of the file that is held open for reading. Its methods
// may be called concurrently.
//
// The file keeps one State for all who read: to begin a transaction of bbolt's
// for each costs more than most reads do. A commit replaces it once it is durable.
// So nobody who reads waits for a commit, and nobody sees one that could still be
// lost. The State that was replaced ends with its last user.
//
// bbolt maps the file anew when it grows beyond the address space that was
// reserved, and waits for all readers then. A State that no reader ends would make
// it wait for ever. So one is shared only while the next commit cannot grow the
// file that far; everybody else gets a State of their own.
type State struct {
	file *File
	tx   *bolt.Tx
	id   int
	root Tree

	buckets atomic.Pointer[map[string]Tree] // in root, those that were asked for

	users atomic.Int64 // and retired, once there will be no more
	end   sync.Once
	err   error // of the end
}

// retired is far below what users can count.
const retired = -1 << 62

// Acquire returns the last durable state, until Release. Where no State is shared
// it waits for a commit that can be seen already. It is an error when the file is
// out of use.
func (f *File) Acquire() (*State, error) {
	for {
		s := f.shared.Load()
		if s == nil {
			return f.ownState()
		}
		if s.users.Add(1) > 0 {
			return s, nil
		}
		_ = s.Release() // it was replaced just now, and its end is not the caller's
	}
}

// Release ends the use of a State, of which nothing may be touched from then on.
// Its error is that of the end of bbolt's transaction.
func (s *State) Release() error {
	if s.users.Add(-1) != retired {
		return nil
	}
	return s.close()
}

// retire lets a State, which may be nil, end with its last user.
func (s *State) retire() {
	if s != nil && s.users.Add(retired) == retired {
		_ = s.close() // a panic of bbolt puts the file out of use, which others hear of
	}
}

// close may be called more than once: by somebody too who has come too late.
func (s *State) close() error {
	s.end.Do(func() { s.err = s.file.Rollback(s.tx) })
	return s.err
}

// ID returns the number of the transaction that made the state.
func (s *State) ID() int { return s.id }

// Root returns the root bucket.
func (s *State) Root() Tree { return s.root }

// Bucket is Root's, but looks for a bucket only once.
func (s *State) Bucket(name string) (b Tree, found bool, err error) {
	known := s.buckets.Load()
	if known != nil {
		if b, found = (*known)[name]; found {
			return b, true, nil
		}
	}
	b, found, err = s.root.Bucket([]byte(name))
	if !found || err != nil {
		return Tree{}, false, err
	}
	more := map[string]Tree{name: b}
	if known != nil {
		maps.Copy(more, *known)
	}
	s.buckets.CompareAndSwap(known, &more) // else somebody else has found one: next time
	return b, true, nil
}

// ownState returns a State for one user.
func (f *File) ownState() (*State, error) {
	tx, err := f.Begin(false)
	if err != nil {
		return nil, err
	}
	return f.stateOf(tx)
}

// stateOf returns a State for one user, which ends tx.
func (f *File) stateOf(tx *bolt.Tx) (*State, error) {
	root, err := f.Base(tx)
	if err != nil {
		_ = f.Rollback(tx) // the damage says more
		return nil, err
	}
	s := &State{file: f, tx: tx, id: tx.ID(), root: root}
	s.users.Store(retired + 1)
	return s, nil
}

// share replaces the shared State by the last durable state. The caller holds
// f.writer, so that no commit is in flight and Close has not begun. What bbolt shows
// is durable then, and there is nothing to wait for: if it shows something else the
// file was written over. If there is an error, the next user meets it.
func (f *File) share() {
	var s *State
	tx, err := f.begin(false, true)
	if err == nil {
		s, err = f.stateOf(tx)
	}
	switch {
	case err != nil:
		s = nil
	case !f.mayShare(s.tx.Size()):
		_ = s.Release() // as above
		s = nil
	default:
		s.users.Store(0)
	}
	f.mu.Lock()
	if f.broken == nil {
		s = f.shared.Swap(s)
	}
	f.mu.Unlock()
	s.retire()
}

// commitRoom is what a commit writes at most, beside the pages that were there. A
// batch counts at most 320 MiB: it takes one more transaction, of at most 256 MiB,
// while those before it count at most 64 MiB. What is stored is smaller than what
// is counted for it, and pages that are a quarter full, with the branches above
// them, make it six times as much at most.
const commitRoom = 2 << 30

// mayShare reports whether a commit on a state of so many bytes stays within the
// reserved address space whatever it does. At worst it writes all pages anew, each
// split in two half full ones, and the list of those that it freed.
func (f *File) mayShare(size int64) bool {
	return size < (f.reserved-commitRoom)/4
}

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
