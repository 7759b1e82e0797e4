package boltfile

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// noStatx is set once the kernel, or a sandbox, has refused statx.
var noStatx atomic.Bool

// identify looks at the file that path names or, if it is "", at fd.
//
// It asks for no times. Since Linux 6.13 a file whose times were asked for gets
// new ones at its next write, however soon that is, and the change of the inode
// made each commit about a fifth slower (Documentation/filesystems/multigrain-ts).
func identify(fd int, path string, id *identity) error {
	if noStatx.Load() {
		return identifyByStat(fd, path, id)
	}
	flags := unix.AT_STATX_SYNC_AS_STAT
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	} else {
		fd = unix.AT_FDCWD
	}
	var st unix.Statx_t
	err := uninterrupted(func() error { return unix.Statx(fd, path, flags, unix.STATX_INO|unix.STATX_SIZE, &st) })
	// Sandboxes that do not know statx say EPERM.
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) && path == "" {
		noStatx.Store(true)
		return identifyByStat(fd, path, id)
	}
	*id = identity{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino, int64(st.Size)}
	return err
}
