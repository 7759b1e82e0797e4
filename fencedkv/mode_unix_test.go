//go:build unix

package fencedkv_test

import (
	"os"
	"testing"
)

func TestFileIsPrivate(t *testing.T) {
	info, err := os.Stat(open(t, nil).Path())
	must(t, err)
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode = %o, want 600", got)
	}
}
