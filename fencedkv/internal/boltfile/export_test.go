package boltfile

import "os"

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
}

// WithOps returns o with its operations replaced.
func WithOps(o Options, ops Ops) Options {
	o.ops = &fileOps{writeAt: ops.WriteAt, datasync: ops.Datasync, sync: ops.Sync, syncDir: ops.SyncDir,
		link: ops.Link, rename: ops.Rename, waiting: ops.Waiting, serve: ops.Serve}
	return o
}

// The real operations, for tests that watch them.
var (
	Datasync        = datasync
	SyncDir         = syncDir
	Link            = link
	RenameNoReplace = renameNoReplace
)
