//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package boltfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock that bbolt takes, on the descriptor that bbolt will be
// given: flock(2) belongs to the open file, so bbolt finds it held by itself.
func tryLock(f *os.File) (bool, error) {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.EINTR:
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// unlock frees the lock at once, even if a process that is being forked at this
// moment still has a copy of the descriptor. A closed file is left alone.
func unlock(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _ = unix.Flock(int(fd), unix.LOCK_UN) })
	}
}
