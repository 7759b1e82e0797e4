package boltfile

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// File is an open bbolt file, locked against every other process and against a
// second Open in this one. Its methods are safe for concurrent use.
//
// Use Begin, Commit and Rollback, and not those of DB and Tx: when bbolt panics in
// them it leaves its own mutexes locked, on which the next caller would wait for
// ever. These methods free them and return an error.
// The File is then out of use: every later Begin returns that error.
type File struct {
	path       string
	file       *os.File
	db         *bolt.DB
	lostCommit bool
	created    bool
	release    func()

	commit func(*bolt.Tx) error

	writer  sync.Mutex    // held by the write transaction
	durable atomic.Uint64 // the last transaction of which it is known

	pageSize int64
	reserved int64                 // of address space; 0 if none is
	shared   atomic.Pointer[State] // nil while none is shared; stored with mu held

	mu      sync.Mutex
	writing *bolt.Tx      // the write transaction, nil if there is none
	flight  chan struct{} // closed when the commit that began last has ended
	size    int64         // the largest size seen; bbolt never makes a file smaller
	probe   func() (size int64, there bool, err error)
	broken  error // why the file is out of use, nil if it is not

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

// Begin starts a transaction, a writable one once the one before has ended. One
// that cannot write may wait for the commit in flight: what it reads is durable.
// End the transaction with Commit or Rollback of f.
//
// Of one that writes the error is a *CorruptError if the file has become shorter,
// and from then on, and one over ErrMoved while the path does not name it.
func (f *File) Begin(writable bool) (*bolt.Tx, error) {
	if writable {
		f.writer.Lock()
	}
	tx, err := f.begin(writable, writable)
	switch {
	case writable && err != nil:
		f.writer.Unlock()
	case !writable && err == nil:
		if err := f.settled(tx); err != nil {
			_ = f.Rollback(tx) // the failed commit says more
			return nil, err
		}
	}
	return tx, err
}

// begin starts a transaction. One that reads may stand on a commit in flight,
// unless it has to stand exactly on the last durable one.
func (f *File) begin(writable, exactly bool) (tx *bolt.Tx, err error) {
	if err := f.check(writable); err != nil {
		return nil, err
	}
	last, over := f.durable.Load(), error(nil)
	err = Guard(f.path, func() (err error) {
		if tx, err = f.db.Begin(writable); err != nil {
			return err
		}
		if over = f.standsOn(tx, last, exactly); over != nil {
			_ = tx.Rollback()
		}
		return over
	})
	switch {
	case isPanic(err) && writable:
		freeWriter(f.db)
	case isPanic(err):
		freeReadBegin(f.db)
	case err == nil && writable:
		f.mu.Lock()
		f.writing = tx
		f.mu.Unlock()
	}
	f.latch(err)
	if over != nil {
		f.breakdown(over)
	}
	return tx, err
}

// Rollback ends a transaction and drops what it wrote. One that has ended is
// left alone.
func (f *File) Rollback(tx *bolt.Tx) error {
	if tx.Writable() {
		if !f.isWriting(tx) {
			return nil
		}
		defer f.endWriting()
	} else if tx.DB() == nil {
		return nil
	}
	err := Guard(f.path, tx.Rollback)
	if isPanic(err) && tx.Writable() {
		freeWriter(f.db)
	}
	f.latch(err)
	return err
}

// Close waits for the open transactions and States, then closes the file and frees its
// lock. Later calls return what the first returned.
func (f *File) Close() error {
	f.close.Do(func() {
		defer f.release()
		f.writer.Lock() // a commit would share a State again
		defer f.writer.Unlock()
		f.mu.Lock()
		shared := f.shared.Swap(nil)
		f.mu.Unlock()
		shared.retire()
		f.closeErr = Guard(f.path, f.db.Close)
		unlock(f.file)
		if err := f.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) && f.closeErr == nil {
			f.closeErr = err
		}
		if f.closeErr != nil {
			f.closeErr = fmt.Errorf("fencedkv: close %s: %w", f.path, f.closeErr)
		}
	})
	return f.closeErr
}

func (f *File) isWriting(tx *bolt.Tx) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writing == tx
}

// endWriting lets the next writer in.
func (f *File) endWriting() {
	f.mu.Lock()
	f.writing = nil
	f.mu.Unlock()
	f.writer.Unlock()
}

// latch puts the file out of use if err is a panic of bbolt.
func (f *File) latch(err error) {
	if isPanic(err) {
		f.breakdown(err)
	}
}

// breakdown puts the file out of use. The first reason is kept.
func (f *File) breakdown(err error) {
	f.mu.Lock()
	if f.broken == nil {
		f.broken = err
	}
	shared := f.shared.Swap(nil)
	f.mu.Unlock()
	shared.retire()
}

// check reports why no transaction can begin.
func (f *File) check(writable bool) error {
	err := f.look(writable)
	if _, short := errors.AsType[*CorruptError](err); short {
		f.breakdown(err)
	}
	return err
}

func (f *File) look(writable bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil || !writable {
		return f.broken
	}
	size, there, err := f.probe()
	switch {
	case err != nil:
		return fmt.Errorf("fencedkv: look at %s: %w", f.path, err)
	case !there:
		return movedError(f.path)
	case size < f.size:
		return &CorruptError{Path: f.path, Detail: fmt.Sprintf(
			"the file was cut short while open: it has %d bytes and had %d", size, f.size)}
	}
	f.size = size
	return nil
}

func isPanic(err error) bool {
	if err == nil {
		return false // without the allocation of errors.As: every transaction asks
	}
	var c *CorruptError
	return errors.As(err, &c) && c.Stack != nil
}
