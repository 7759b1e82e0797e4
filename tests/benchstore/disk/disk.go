// Package disk finds a directory whose writes reach a device, and measures what
// making them reach it takes.
//
// # Caveats
//
// Only on Linux can a file system in memory be told from one on a device.
// Whether the device itself keeps what it has acknowledged is not measured.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// ErrMemory: the directory is in memory, where a sync costs nothing.
var ErrMemory = errors.New("is on a file system in memory, where a sync costs nothing; give --dir a directory on a disk")

// Temp makes a new directory in parent. If parent is empty it is that of
// temporary files, or the working directory if the former is in memory.
func Temp(parent string) (string, error) {
	if parent != "" {
		if err := Check(parent); err != nil {
			return "", err
		}
		return os.MkdirTemp(parent, "benchstore-")
	}
	parent = os.TempDir()
	if errors.Is(Check(parent), ErrMemory) {
		parent = "."
		if err := Check(parent); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(parent, "benchstore-")
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// Check returns an error over ErrMemory if dir is in memory.
func Check(dir string) error {
	memory, err := inMemory(dir)
	if err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if memory {
		return fmt.Errorf("%s %w", dir, ErrMemory)
	}
	return nil
}

const (
	page      = 4096
	syncFor   = time.Second
	syncTimes = 200
)

// SyncTime returns the median time of an fdatasync after a page of a file in dir
// was overwritten: at most 200 of them, or as many as a second has.
func SyncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	content := make([]byte, page)
	if _, err := f.Write(content); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	var took []time.Duration
	for begun := time.Now(); len(took) < syncTimes && time.Since(begun) < syncFor; {
		content[0]++
		if _, err := f.WriteAt(content, 0); err != nil {
			return 0, err
		}
		start := time.Now()
		if err := datasync(f); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
