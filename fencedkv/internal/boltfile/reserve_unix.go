//go:build unix

package boltfile

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// reservation is the address space to map at once, so that a growing file need
// not be mapped anew, for which bbolt waits until every reader has ended. It
// costs no memory. 64 GiB is a thousandth of what a process has on amd64;
// a larger file gets five times its size, see mayShare. A limit on address space
// or a file system with a smaller largest file gets less, and 0 leaves it to bbolt.
func reservation(f *os.File, size int64) int {
	if strconv.IntSize < 64 {
		return 0
	}
	whole := size/(1<<30) + 1
	for _, n := range []int64{max(64, 5*whole), max(4, 2*whole)} {
		n <<= 30
		b, err := unix.Mmap(int(f.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
		if err == nil {
			_ = unix.Munmap(b)
			return int(n)
		}
	}
	return 0
}
