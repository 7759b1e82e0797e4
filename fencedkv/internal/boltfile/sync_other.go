//go:build !linux

package boltfile

import "os"

func datasync(f *os.File) error { return f.Sync() }
