//go:build !linux

package disk

import "os"

func inMemory(dir string) (bool, error) {
	_, err := os.Stat(dir)
	return false, err
}

func datasync(f *os.File) error { return f.Sync() }
