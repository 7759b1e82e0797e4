//go:build !unix

package boltfile

import "os"

// reservation is nothing: Windows would make the file that large.
func reservation(*os.File, int64) int { return 0 }
