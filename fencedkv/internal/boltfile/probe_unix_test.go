//go:build unix

package boltfile_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

func TestSignalDoesNotEndTheLookAtAFile(t *testing.T) {
	for _, want := range []error{nil, unix.ENOENT} {
		calls := 0
		err := boltfile.Uninterrupted(func() error {
			if calls++; calls < 3 {
				return unix.EINTR
			}
			return want
		})
		if !errors.Is(err, want) || calls != 3 {
			t.Errorf("got %v after %d calls, want %v after 3", err, calls, want)
		}
	}
}
