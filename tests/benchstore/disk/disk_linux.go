package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

func inMemory(dir string) (bool, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false, err
	}
	kind := uint32(s.Type) // a signed number of 32 or 64 bits
	return kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC, nil
}

func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
