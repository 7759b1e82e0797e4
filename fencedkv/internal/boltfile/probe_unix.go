//go:build unix

package boltfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// prober returns a function for the size of f and whether path still names it,
// which every write transaction asks. It is not for concurrent use. Whoever may
// not look at the path any more, having given up rights since Open, cannot tell,
// and it is taken to be there.
func prober(f *os.File, path string) (func() (size int64, there bool, err error), error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var (
		open, named unix.Stat_t
		statErr     error
		stat        = func(fd uintptr) { statErr = unix.Fstat(int(fd), &open) }
	)
	return func() (int64, bool, error) {
		if err := conn.Control(stat); err != nil {
			return 0, false, err
		}
		if statErr != nil {
			return 0, false, os.NewSyscallError("fstat", statErr)
		}
		switch err := unix.Stat(path, &named); err {
		case nil:
			return open.Size, named.Dev == open.Dev && named.Ino == open.Ino, nil
		case unix.EACCES, unix.EPERM:
			return open.Size, true, nil
		case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
			return open.Size, false, nil
		default:
			return 0, false, os.NewSyscallError("stat", err)
		}
	}, nil
}
