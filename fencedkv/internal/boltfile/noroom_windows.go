package boltfile

import "golang.org/x/sys/windows"

// noRoomErrors are the disk that is full and the quota.
var noRoomErrors = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}
