//go:build !linux

package boltfile

import "os"

func lockHolder(*os.File) (pid int, name string) { return 0, "" }
