package boltfile

import "os"

// fileOps is the seam at which tests watch what reaches the disk and make it
// fail. A nil function is the real operation.
type fileOps struct {
	writeAt  func(f *os.File, b []byte, off int64) (int, error)
	datasync func(f *os.File) error
	sync     func(f *os.File) error
	syncDir  func(dir string) error
	link     func(from, to string) error
	rename   func(from, to string) error // refuses an existing name
	waiting  func()                      // the lock is held by somebody else
	serve    func()                      // bbolt is about to get the file
	reserve  func(f *os.File, size int64) int
}

func (o *fileOps) doWriteAt(f *os.File, b []byte, off int64) (int, error) {
	if o.writeAt != nil {
		return o.writeAt(f, b, off)
	}
	return f.WriteAt(b, off)
}

func (o *fileOps) doDatasync(f *os.File) error {
	if o.datasync != nil {
		return o.datasync(f)
	}
	return datasync(f)
}

func (o *fileOps) doSync(f *os.File) error {
	if o.sync != nil {
		return o.sync(f)
	}
	return f.Sync()
}

func (o *fileOps) doSyncDir(dir string) error {
	if o.syncDir != nil {
		return o.syncDir(dir)
	}
	return syncDir(dir)
}

func (o *fileOps) doLink(from, to string) error {
	if o.link != nil {
		return o.link(from, to)
	}
	return link(from, to)
}

func (o *fileOps) doRename(from, to string) error {
	if o.rename != nil {
		return o.rename(from, to)
	}
	return renameNoReplace(from, to)
}

func (o *fileOps) doWaiting() {
	if o.waiting != nil {
		o.waiting()
	}
}

func (o *fileOps) doServe() {
	if o.serve != nil {
		o.serve()
	}
}

func (o *fileOps) doReserve(f *os.File, size int64) int {
	if o.reserve != nil {
		return o.reserve(f, size)
	}
	return reservation(f, size)
}
