package disk_test

import (
	"errors"
	"os"
	"testing"

	"github.com/fencedkv/fencedkv/tests/benchstore/disk"
)

func TestMemoryIsRefused(t *testing.T) {
	const memory = "/dev/shm"
	if _, err := os.Stat(memory); err != nil {
		t.Fatalf("this test needs a tmpfs at %s: %v", memory, err)
	}
	if err := disk.Check(memory); !errors.Is(err, disk.ErrMemory) {
		t.Errorf("got %v, want %v", err, disk.ErrMemory)
	}
	if dir, err := disk.Temp(memory); !errors.Is(err, disk.ErrMemory) {
		t.Errorf("a directory in it: got %q, %v, want %v", dir, err, disk.ErrMemory)
	}
}

func TestTempAvoidsMemoryThatNobodyAskedFor(t *testing.T) {
	t.Setenv("TMPDIR", "/dev/shm")
	dir, err := disk.Temp("")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	if err := disk.Check(dir); err != nil {
		t.Error(err)
	}
}

func TestASyncTakesTime(t *testing.T) {
	d, err := disk.SyncTime(".")
	if err != nil || d <= 0 {
		t.Errorf("got %v, %v, want more than nothing", d, err)
	}
}
