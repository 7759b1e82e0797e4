package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	bolt "go.etcd.io/bbolt"
)

// Outcome is what is known of a commit that failed.
type Outcome int

const (
	// NoRoom: nothing is applied, and the file is as sound as before. The disk
	// is full, or a quota or a limit on the size of files is reached; with room
	// the next commit works.
	NoRoom Outcome = iota + 1
	// NotApplied: nothing is applied, and the File is out of use.
	NotApplied
	// Unknown: the transaction may or may not be applied, and the File is out of
	// use.
	Unknown
)

// CommitError is a commit that failed. It unwraps to its causes.
type CommitError struct {
	Path    string
	Outcome Outcome
	Err     error
	Errno   error // the system's error, if the text of Err is all that bbolt left of it
}

// Unwrap returns the causes.
func (e *CommitError) Unwrap() []error {
	if e.Errno == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Errno}
}

func (e *CommitError) Error() string { return fmt.Sprintf("commit to %s: %v", e.Path, e.Err) }

// Commit commits a writable transaction. After nil the transaction is durable.
// The error of one that has begun to commit is a *CommitError; if its outcome is
// not NoRoom the File is out of use, and every later Begin returns that error,
// because what the disk holds and what the kernel shows may differ from now on.
// Transactions that are open can still be read.
func (f *File) Commit(tx *bolt.Tx) error {
	if !f.isWriting(tx) {
		return tx.Commit() // an error: it has ended, or cannot write
	}
	id := tx.ID()
	if err := f.mayCommit(tx); err != nil {
		_ = f.Rollback(tx) // why it may not says more
		return &CommitError{Path: f.path, Outcome: NotApplied, Err: err}
	}
	flight := make(chan struct{})
	f.mu.Lock()
	f.flight = flight
	f.mu.Unlock()
	defer close(flight)

	err := Guard(f.path, func() error { return f.commit(tx) })
	if err == nil {
		f.durable.Store(uint64(id))
		f.share()
		f.endWriting()
		return nil
	}
	failed := f.judge(id, tx.Stats(), err)
	if failed.Outcome != NoRoom {
		f.breakdown(failed)
	}
	if isPanic(err) {
		_ = f.Rollback(tx) // the panic says more
	} else {
		f.endWriting()
	}
	return failed
}

// judge tells how far the commit of transaction id came, by the meta page that
// it would have replaced. bbolt's error does not say at which step it arose.
//
// As long as the old meta page stands there unchanged, the new one was never
// given to the kernel, and nothing refers to the pages that were. With the new
// one, or a part of it, it is not known what the disk has or will get. The
// address is that of bbolt: transaction id modulo 2. bbolt itself is not asked:
// after a failure to map the file anew it has no memory that it could look at.
//
// If the write of the meta page fails the old one proves nothing: the mapping
// may have shown the new one for a moment, from which bbolt has then loaded its
// free pages, and a file system over a network may still write it.
func (f *File) judge(id int, did bolt.TxStats, err error) *CommitError {
	e := &CommitError{Path: f.path, Outcome: Unknown, Err: err}
	if isPanic(err) || isWrite(err) && wroteData(did) {
		return e
	}
	m, readErr := metaAt(f.file, int64(id&1)*f.pageSize)
	if readErr != nil || !m.usable() || int(m.txid) == id {
		return e
	}
	e.Outcome = NotApplied
	if noRoom, errno := isNoRoom(err); noRoom {
		e.Outcome, e.Errno = NoRoom, errno
	}
	return e
}

// wroteData reports whether all data pages of a transaction were written: those
// of its nodes and that of its free pages, one write each. The next write is that
// of the meta page.
func wroteData(did bolt.TxStats) bool { return did.GetWrite() > did.GetSpill() }

// isWrite reports whether it was a write that failed, and not a sync.
func isWrite(err error) bool {
	p, ok := errors.AsType[*fs.PathError](err)
	return ok && p.Op == "write"
}

// isNoRoom reports whether a write, or the growth of the file, found no room. A
// sync that finds none has lost what was written before, which is a failure. Of
// the error of the growth bbolt keeps the text: errno is then what it stood for.
func isNoRoom(err error) (yes bool, errno error) {
	write := isWrite(err)
	grow := strings.HasPrefix(err.Error(), "file resize error: ")
	for _, full := range noRoomErrors {
		switch {
		case write && errors.Is(err, full):
			return true, nil
		case grow && strings.HasSuffix(err.Error(), ": "+full.Error()):
			return true, full
		}
	}
	return false, nil
}
