package boltfile

import (
	"os"

	bolt "go.etcd.io/bbolt"
)

// Ops are the operations that tests watch or make fail. nil is the real one.
type Ops struct {
	WriteAt  func(f *os.File, b []byte, off int64) (int, error)
	Datasync func(f *os.File) error
	Sync     func(f *os.File) error
	SyncDir  func(dir string) error
	Link     func(from, to string) error
	Rename   func(from, to string) error
	Waiting  func()
	Serve    func()
	Reserve  func(f *os.File, size int64) int
}

// WithOps returns o with its operations replaced.
func WithOps(o Options, ops Ops) Options {
	o.ops = &fileOps{writeAt: ops.WriteAt, datasync: ops.Datasync, sync: ops.Sync, syncDir: ops.SyncDir,
		link: ops.Link, rename: ops.Rename, waiting: ops.Waiting, serve: ops.Serve, reserve: ops.Reserve}
	return o
}

// The real operations, for tests that watch them.
var (
	Datasync        = datasync
	SyncDir         = syncDir
	Link            = link
	RenameNoReplace = renameNoReplace
)

// View runs fn in a read transaction, guarded.
func (f *File) View(fn func(tx *bolt.Tx) error) error {
	tx, err := f.Begin(false)
	if err != nil {
		return err
	}
	defer f.Rollback(tx)
	return Guard(f.path, func() error { return fn(tx) })
}

// Update runs fn in a write transaction, guarded, and commits if fn returns nil.
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

// Shares reports whether readers share a State.
func (f *File) Shares() bool { return f.shared.Load() != nil }

// Read returns the value of a key in a bucket of s.
func (s *State) Read(bucket, key string) (value string, err error) {
	err = Guard(s.file.path, func() error {
		b, _, err := s.Bucket(bucket)
		if err != nil {
			return err
		}
		v, _, err := b.Get([]byte(key))
		value = string(v)
		return err
	})
	return value, err
}

// Checked reports whether c has looked at a page.
func (c *PageCheck) Checked(id uint64) bool { return c.checked.has(id) }
