//go:build !windows

package boltfile

import "syscall"

// noRoomErrors are the disk that is full, the quota, and the limit on the size
// of a file.
var noRoomErrors = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
