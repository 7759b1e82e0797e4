package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
)

// tempPattern names a file under construction. Its directory is the store's, so
// that link(2) can publish it.
const tempPattern = ".fencedkv-*.tmp"

// create makes a complete file and publishes it at path, unless a file has that
// name by then. It reports whether it was this call that made it.
//
// The temporary file is locked from before anything is written until it has its
// final name, so that a leftover of a dead process is told from the work of a
// living one by its lock. A leftover is never opened as a store; the next
// creation in the directory removes it.
func (o *opening) create(path string) (bool, error) {
	dir := filepath.Dir(path)
	o.removeLeftovers(dir)
	t, err := newTemp(dir)
	if err != nil {
		return false, err
	}
	defer t.discard()
	if err := o.fill(t); err != nil {
		return false, err
	}
	if !publishOpen {
		if err := t.close(); err != nil {
			return false, err
		}
	}
	err = o.ops.doLink(t.name, path)
	if err != nil && noLinks(err) {
		linkErr := err
		if err = o.ops.doRename(t.name, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, fmt.Errorf("the file system of %s can publish a file neither by link nor by a rename that "+
				"refuses an existing name: %w; %w", dir, linkErr, err)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

func (o *opening) removeLeftovers(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if ok, _ := filepath.Match(tempPattern, e.Name()); !ok || !e.Type().IsRegular() {
			continue
		}
		if name := filepath.Join(dir, e.Name()); removeLeftover(name) {
			o.log.Info("removed the leftover of an interrupted creation", "file", name)
		}
	}
}

// fill writes the file and makes its content durable.
func (o *opening) fill(t *temp) (err error) {
	err = Guard(o.path, func() (err error) {
		t.db, err = bolt.Open(t.name, 0o600, &bolt.Options{
			Timeout:      time.Second, // only this process knows the file
			FreelistType: bolt.FreelistMapType,
			OpenFile:     func(string, int, os.FileMode) (*os.File, error) { return t.file, nil },
		})
		return err
	})
	if err != nil {
		return err
	}
	if o.opts.Init != nil {
		err = GuardAround(o.path, func(user func(func() error) error) error {
			return t.db.Update(func(tx *bolt.Tx) error {
				return user(func() error { return o.opts.Init(tx) })
			})
		})
		if err != nil {
			return fmt.Errorf("initialise: %w", err)
		}
	}
	return o.ops.doSync(t.file)
}

// temp is a file under construction.
type temp struct {
	name string
	file *os.File
	db   *bolt.DB
}

// newTemp makes an empty file, mode 0600, and locks it.
func newTemp(dir string) (*temp, error) {
	for range 16 {
		f, err := os.CreateTemp(dir, tempPattern)
		if err != nil {
			return nil, err
		}
		t := &temp{name: f.Name(), file: f}
		ok, err := tryLock(f)
		if err != nil {
			t.discard()
			return nil, err
		}
		// Before it was locked somebody may have taken it for a leftover.
		if ok && samePath(f, t.name) {
			return t, nil
		}
		t.discard()
	}
	return nil, fmt.Errorf("temporary files in %s vanish as soon as they are made", dir)
}

func (t *temp) close() error {
	var err error
	if t.db != nil {
		err = t.db.Close()
		t.db = nil
	}
	unlock(t.file)
	if e := t.file.Close(); err == nil && !errors.Is(e, os.ErrClosed) {
		err = e
	}
	return err
}

// discard removes the temporary name, if it is still there, before it gives up
// the lock, where the platform can.
func (t *temp) discard() {
	if publishOpen {
		os.Remove(t.name)
	}
	t.close()
	if !publishOpen {
		os.Remove(t.name)
	}
}

// samePath reports whether path still names the open file f.
func samePath(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	want, err := os.Stat(path)
	return err == nil && os.SameFile(have, want)
}
