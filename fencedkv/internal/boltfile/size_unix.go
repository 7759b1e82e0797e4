//go:build unix

package boltfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// sizer returns a function for the size of f that allocates nothing, unlike
// Stat: every transaction asks. It is not for concurrent use.
func sizer(f *os.File) (func() (int64, error), error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var (
		st      unix.Stat_t
		statErr error
		stat    = func(fd uintptr) { statErr = unix.Fstat(int(fd), &st) }
	)
	return func() (int64, error) {
		if err := conn.Control(stat); err != nil {
			return 0, err
		}
		return st.Size, statErr
	}, nil
}
