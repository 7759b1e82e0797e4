package boltfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockByte is the byte before the one that bbolt locks. A lock excludes its own
// handle too, so bbolt's byte cannot be taken for it.
var lockByte = windows.Overlapped{Offset: 0xFFFFFFFE, OffsetHigh: 0xFFFFFFFF}

func tryLock(f *os.File) (bool, error) {
	at := lockByte
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, os.NewSyscallError("LockFileEx", err)
}

func unlock(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) {
			at := lockByte
			_ = windows.UnlockFileEx(windows.Handle(fd), 0, 1, 0, &at)
		})
	}
}
