package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// growStep is how far ahead of its need the file grows, each time with a sync.
// bbolt's own 16 MiB would make every small store that large.
const growStep = 1 << 20

// errAgain: the path no longer names the file that was opened.
var errAgain = errors.New("the file was replaced while it was being opened")

// Open opens the bbolt file at path for reading and writing. A missing file is
// created, with mode 0600, in a directory that must exist; of any number of
// processes that create one path at once exactly one does, and all of them come
// to open its file. A symbolic link is followed, but not created through.
//
// When Open returns, the transaction that the file stands on is durable, and so
// is the file's name.
//
// A file that another process has open is waited for until Options.Timeout; one
// that this process has open, by whatever path, is refused at once. Both are an
// *InUseError over ErrInUse. Damage is a *CorruptError over ErrCorrupt, a file
// of another kind, an empty one included, a *FormatError over ErrFormat. Open may
// be called concurrently.
func Open(path string, o Options) (*File, error) {
	if err := o.check(path); err != nil {
		return nil, err
	}
	op := &opening{path: path, opts: o, ops: o.fileOps(), log: o.logger(), start: time.Now()}
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		f, err := op.attempt()
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, errAgain) || op.left() <= 0 {
			return nil, op.named(err)
		}
		time.Sleep(min(pause, op.left()))
	}
}

// maxPause is the longest time between two tries to get a lock.
const maxPause = 25 * time.Millisecond

// opening is one call of Open.
type opening struct {
	path    string
	opts    Options
	ops     *fileOps
	log     hclog.Logger
	start   time.Time
	created bool
}

func (o *opening) left() time.Duration { return o.opts.timeout() - time.Since(o.start) }

// named adds the path to an error that does not say it yet.
func (o *opening) named(err error) error {
	var (
		inUse   *InUseError
		corrupt *CorruptError
		format  *FormatError
	)
	if errors.As(err, &inUse) || errors.As(err, &corrupt) || errors.As(err, &format) {
		return err
	}
	if e := (*fs.PathError)(nil); errors.As(err, &e) && e.Path == o.path && e.Error() == err.Error() {
		err = e.Err // the path stands there already
	}
	remedy := ""
	if errors.Is(err, fs.ErrPermission) {
		remedy = "; the process must be able to read and write the file and its directory"
	}
	return fmt.Errorf("fencedkv: open %s: %w%s", o.path, err, remedy)
}

func (o *opening) attempt() (*File, error) {
	info, err := o.find()
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(o.path)
	if err != nil {
		return nil, err
	}
	c, err := claimFile(info, o.path)
	if err != nil {
		return nil, err
	}
	f, err := o.openClaimed(real, info)
	if err != nil {
		c.free()
		return nil, err
	}
	f.release = c.free
	return f, nil
}

// find makes sure that a regular file is there, creating it if nothing is.
func (o *opening) find() (os.FileInfo, error) {
	info, err := os.Stat(o.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := o.createMissing(); err != nil {
			return nil, err
		}
		if info, err = os.Stat(o.path); errors.Is(err, fs.ErrNotExist) {
			return nil, errAgain
		}
	}
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("it is a directory; name a file in it")
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is not a regular file (%v)", info.Mode().Type())
	}
	return info, nil
}

func (o *opening) createMissing() error {
	if target, err := os.Readlink(o.path); err == nil {
		return fmt.Errorf("it is a symbolic link to %s, which does not exist; "+
			"a store is not created through a link", target)
	}
	if dir := filepath.Dir(o.path); !isDir(dir) {
		return fmt.Errorf("the directory %s does not exist; create it first", dir)
	}
	made, err := o.create(o.path)
	if err != nil {
		return fmt.Errorf("create the file: %w", err)
	}
	if made {
		o.created = true
		o.log.Info("created a store", "file", o.path)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openClaimed opens, locks, checks and settles the file, then serves it. The
// descriptor stays in our hands, so that the lock is free again whatever bbolt
// does with it.
func (o *opening) openClaimed(real string, info os.FileInfo) (_ *File, err error) {
	file, err := os.OpenFile(real, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errAgain
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unlock(file)
			file.Close()
		}
	}()
	if have, err := file.Stat(); err != nil || !os.SameFile(have, info) {
		return nil, errors.Join(errAgain, err)
	}
	if err := o.lock(file); err != nil {
		return nil, err
	}
	// Whoever held the lock may have put another file in this one's place.
	if !samePath(file, o.path) {
		return nil, errAgain
	}
	cur, err := o.settle(file)
	if err != nil {
		return nil, err
	}
	if err := o.syncDir(filepath.Dir(real)); err != nil {
		return nil, err
	}
	f, err := o.serve(file, real)
	if err != nil {
		return nil, err
	}
	if !samePath(file, o.path) {
		f.db.Close()
		return nil, errAgain
	}
	f.lostCommit = cur.lost
	f.durable.Store(uint64(int(cur.txid))) // settle has seen to it; int as in Tx.ID
	f.pageSize = int64(cur.pageSize)
	f.share()
	return f, nil
}

// lock waits for the lock of file until the timeout.
func (o *opening) lock(file *os.File) error {
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		ok, err := tryLock(file)
		if ok || err != nil {
			return err
		}
		if o.left() <= 0 {
			return o.inUse(file)
		}
		o.ops.doWaiting()
		time.Sleep(min(pause, o.left()))
	}
}

func (o *opening) inUse(file *os.File) error {
	e := &InUseError{Path: o.path, Waited: time.Since(o.start)}
	e.PID, e.Process = lockHolder(file)
	if e.PID == os.Getpid() {
		e.ThisProcess = true
	}
	return e
}

// settle checks the file, under its lock, and writes the current meta page
// again, in place, then syncs. What a process killed in its commit left behind
// is visible but need not be durable, and after a failed sync the kernel may
// take a page for clean that the disk never got, so that only a new write makes
// a later sync prove anything. An empty commit would instead overwrite the other
// meta page, which may be the only durable one.
func (o *opening) settle(file *os.File) (current, error) {
	info, err := file.Stat()
	if err != nil {
		return current{}, err
	}
	cur, err := readMetas(o.path, file, info.Size())
	if err != nil {
		return cur, err
	}
	if cur.lost && !o.opts.AcceptLostCommit {
		return cur, lostCommitError(o.path, cur)
	}
	if err := checkPages(o.path, file, info.Size(), cur.meta); err != nil {
		return cur, err
	}
	if cur.lost {
		o.log.Warn("one meta page is invalid; going on from the other one, the last transaction may be lost",
			"file", o.path, "invalid", 1-cur.page, "transaction", cur.txid)
	}
	page := make([]byte, cur.pageSize)
	if _, err := file.ReadAt(page, cur.offset()); err != nil {
		return cur, fmt.Errorf("read the meta page: %w", err)
	}
	if _, err := o.ops.doWriteAt(file, page, cur.offset()); err != nil {
		return cur, fmt.Errorf("write the meta page again: %w", err)
	}
	if err := o.ops.doDatasync(file); err != nil {
		return cur, fmt.Errorf("sync the meta page: %w", err)
	}
	return cur, nil
}

// syncDir makes the file's name durable. Its creator may have died before it
// did so itself, so every Open does.
func (o *opening) syncDir(dir string) error {
	err := o.ops.doSyncDir(dir)
	if errors.Is(err, fs.ErrPermission) && !o.created {
		o.log.Warn("the directory cannot be synced; the file's name may not be durable", "directory", dir, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("sync the directory %s: %w", dir, err)
	}
	return nil
}

// serve hands the file to bbolt.
func (o *opening) serve(file *os.File, real string) (*File, error) {
	o.ops.doServe()
	abs, err := filepath.Abs(o.path)
	if err != nil {
		return nil, err
	}
	probe, err := prober(file, abs)
	if err != nil {
		return nil, err
	}
	size, _, err := probe()
	if err != nil {
		return nil, err
	}
	reserved := o.ops.doReserve(file, size)
	f := &File{path: o.path, file: file, created: o.created, size: size, probe: probe, reserved: int64(reserved), commit: o.opts.commit()}
	err = Guard(o.path, func() (err error) {
		f.db, err = bolt.Open(real, 0o600, &bolt.Options{
			Timeout:         max(o.left(), time.Millisecond),
			FreelistType:    bolt.FreelistMapType,
			InitialMmapSize: reserved,
			OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return file, nil },
		})
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, o.inUse(file)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum):
		return nil, &CorruptError{Path: o.path, Detail: "bbolt refuses it: " + err.Error(), Cause: err}
	case err != nil:
		return nil, err
	}
	f.db.AllocSize = growStep
	return f, nil
}
