package boltfile

import (
	"errors"
	"fmt"
	"os"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// File is an open bbolt file, locked against every other process and against a
// second Open in this one. Its methods are safe for concurrent use.
//
// Begin, Commit and Rollback are to be preferred to those of DB and Tx: when
// bbolt panics in them it leaves locks held, on which the next caller would wait
// for ever. These methods then return the error instead.
type File struct {
	path       string
	file       *os.File
	db         *bolt.DB
	lostCommit bool
	created    bool
	release    func()

	writer sync.Mutex // held by the write transaction

	// mu is held while bbolt takes or gives up its inner locks.
	mu      sync.Mutex
	writing *bolt.Tx // the write transaction, nil if there is none
	size    int64    // the largest size seen; bbolt never makes a file smaller
	broken  error    // why the file is out of use, nil if it is not

	close    sync.Once
	closeErr error
}

// DB returns the database. It belongs to the File: do not close it.
func (f *File) DB() *bolt.DB { return f.db }

// Path returns the path that was given to Open.
func (f *File) Path() string { return f.path }

// Created reports whether this Open made the file.
func (f *File) Created() bool { return f.created }

// RecoveredLostCommit reports whether one meta page was invalid and
// Options.AcceptLostCommit was needed. The invalid page is replaced by the next
// commit; until then every Open needs the option.
func (f *File) RecoveredLostCommit() bool { return f.lostCommit }

// Begin starts a transaction, a writable one once the one before has ended. It
// returns a *CorruptError if the file has become shorter. End the transaction
// with Commit or Rollback of f.
func (f *File) Begin(writable bool) (*bolt.Tx, error) {
	if writable {
		f.writer.Lock()
	}
	var tx *bolt.Tx
	err := f.locked(func() (err error) {
		if err = f.checkSize(); err == nil {
			tx, err = f.db.Begin(writable)
		}
		if err == nil && writable {
			f.writing = tx
		}
		return err
	})
	if err != nil && writable {
		f.writer.Unlock()
	}
	return tx, err
}

// Commit commits a writable transaction. bbolt's errors are returned as they
// are. After nil the transaction is durable.
func (f *File) Commit(tx *bolt.Tx) error {
	defer f.endWriting(tx)
	return f.latchPanic(Guard(f.path, tx.Commit))
}

// Rollback ends a transaction and drops what it wrote. A transaction that has
// ended, or whose file is out of use, is left alone.
func (f *File) Rollback(tx *bolt.Tx) error {
	if tx.DB() == nil {
		return nil
	}
	if tx.Writable() {
		defer f.endWriting(tx)
		return f.latchPanic(Guard(f.path, tx.Rollback))
	}
	return f.locked(tx.Rollback)
}

// View runs fn in a read transaction, guarded. fn is no code of the user: see
// Guard.
func (f *File) View(fn func(tx *bolt.Tx) error) error {
	tx, err := f.Begin(false)
	if err != nil {
		return err
	}
	defer f.Rollback(tx)
	return Guard(f.path, func() error { return fn(tx) })
}

// Update runs fn in a write transaction, guarded, and commits if fn returns
// nil. fn is no code of the user: see Guard.
func (f *File) Update(fn func(tx *bolt.Tx) error) error {
	tx, err := f.Begin(true)
	if err != nil {
		return err
	}
	defer f.Rollback(tx) // does nothing after a commit
	if err := Guard(f.path, func() error { return fn(tx) }); err != nil {
		return err
	}
	return f.Commit(tx)
}

// Close waits for the open transactions, then closes the file and frees its
// lock. Later calls return what the first returned. If bbolt has panicked it
// does not wait.
func (f *File) Close() error {
	f.close.Do(func() {
		defer f.release()
		f.mu.Lock()
		broken := f.broken
		f.mu.Unlock()
		if broken == nil {
			f.closeErr = Guard(f.path, f.db.Close)
		}
		unlock(f.file)
		if err := f.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) && f.closeErr == nil {
			f.closeErr = fmt.Errorf("fencedkv: close %s: %w", f.path, err)
		}
	})
	return f.closeErr
}

// locked runs fn, a bbolt call that takes bbolt's inner locks for a moment.
func (f *File) locked(fn func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return f.broken
	}
	err := Guard(f.path, fn)
	if isPanic(err) {
		f.broken = err
	}
	return err
}

// endWriting lets the next writer in, once for each transaction.
func (f *File) endWriting(tx *bolt.Tx) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writing == tx {
		f.writing = nil
		f.writer.Unlock()
	}
}

func (f *File) latchPanic(err error) error {
	if isPanic(err) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.broken == nil {
			f.broken = err
		}
	}
	return err
}

func (f *File) checkSize() error {
	info, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("fencedkv: stat %s: %w", f.path, err)
	}
	if info.Size() < f.size {
		return &CorruptError{Path: f.path, Detail: fmt.Sprintf(
			"the file was cut short while open: it has %d bytes and had %d", info.Size(), f.size)}
	}
	f.size = info.Size()
	return nil
}

func isPanic(err error) bool {
	var c *CorruptError
	return errors.As(err, &c) && c.Stack != nil
}
