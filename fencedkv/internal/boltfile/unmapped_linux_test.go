package boltfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

func init() { roles["unmapped"] = roleUnmapped }

// roleUnmapped commits what the file must be mapped anew for, where there is no
// address space for it. bbolt has given the old mapping back by then.
func roleUnmapped(args []string) error {
	path, failing := args[0], false
	o := unshared(boltfile.Options{Init: filled("0"), Commit: func(tx *bolt.Tx) error {
		if failing {
			// bbolt maps the whole file. What is left is enough for all else.
			if err := errors.Join(limitAddressSpace(1<<30), os.Truncate(path, 4<<30)); err != nil {
				return err
			}
		}
		return tx.Commit()
	}})
	f, err := boltfile.Open(path, o)
	if err != nil {
		return err
	}
	if err := put(f, "id", "1"); err != nil {
		return err
	}
	failing = true
	err = put(f, "large", string(make([]byte, 1<<18)))
	var failed *boltfile.CommitError
	if !errors.As(err, &failed) || failed.Outcome != boltfile.NotApplied {
		return fmt.Errorf("the commit: got %w, want a CommitError that says that nothing is applied", err)
	}
	for _, writable := range []bool{false, true} {
		if _, err := f.Begin(writable); !errors.Is(err, failed) {
			return fmt.Errorf("Begin, writable %v, after it: got %w, want its error", writable, err)
		}
	}
	if _, err := f.Acquire(); !errors.Is(err, failed) {
		return fmt.Errorf("Acquire after it: got %w, want its error", err)
	}
	return f.Close()
}

func TestCommitThatCannotMapTheFileAnewIsAnErrorAndTheProcessLives(t *testing.T) {
	if strconv.IntSize == 32 {
		return // bbolt refuses a file of that size
	}
	path := filepath.Join(t.TempDir(), "s.db")
	if err := start(t, "unmapped", path).end(); err != nil {
		t.Fatal(err)
	}
	wantValue(t, open(t, path, boltfile.Options{}), "id", "1")
}
