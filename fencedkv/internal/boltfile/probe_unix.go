//go:build unix

package boltfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// identity tells one file from all others, and how long it is.
type identity struct {
	dev, ino uint64
	size     int64
}

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
		open, named identity
		statErr     error
	)
	look := func() error {
		err := conn.Control(func(fd uintptr) { statErr = identify(int(fd), "", &open) })
		return errors.Join(err, os.NewSyscallError("fstat", statErr))
	}
	if err := look(); err != nil {
		return nil, err
	}
	return func() (int64, bool, error) {
		err := identify(0, path, &named)
		// The number of a file is not given to another one while it is open.
		if err == nil && named.dev == open.dev && named.ino == open.ino {
			return named.size, true, nil
		}
		if err := look(); err != nil {
			return 0, false, err
		}
		switch {
		case err == nil:
			return open.size, false, nil
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
			return open.size, true, nil
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
			return open.size, false, nil
		default:
			return 0, false, os.NewSyscallError("stat", err)
		}
	}, nil
}

// uninterrupted repeats call, which a file system over a network may end when a
// signal comes.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// identifyByStat is identify with fstat and stat, which every system has.
func identifyByStat(fd int, path string, id *identity) (err error) {
	var st unix.Stat_t
	err = uninterrupted(func() error {
		if path == "" {
			return unix.Fstat(fd, &st)
		}
		return unix.Stat(path, &st)
	})
	*id = identity{uint64(st.Dev), st.Ino, st.Size} //nolint:unconvert // of another type elsewhere
	return err
}
