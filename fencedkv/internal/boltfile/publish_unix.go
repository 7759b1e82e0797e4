//go:build unix

package boltfile

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// publishOpen: the file may be published while it is open and locked.
const publishOpen = true

// noLinks reports whether link(2) failed because the file system, or a policy,
// has no hard links.
func noLinks(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS) ||
		errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EMLINK)
}

func link(from, to string) error { return os.Link(from, to) }

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // the file system has no such thing
	}
	return err
}

// removeLeftover removes the temporary file of a creator that died. A living
// one holds the lock from before it writes until its file has its final name.
func removeLeftover(name string) bool {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	// A second name of a published file. It is not locked here, since that
	// could refuse somebody who opens the store at this moment.
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return os.Remove(name) == nil
	}
	if ok, err := tryLock(f); !ok || err != nil {
		return false
	}
	defer unlock(f)
	if now, err := os.Lstat(name); err != nil || !os.SameFile(now, info) {
		return false
	}
	return os.Remove(name) == nil
}
