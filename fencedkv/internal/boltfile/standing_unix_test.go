//go:build unix

package boltfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// writeOver writes into an open file without making it shorter before.
func writeOver(t *testing.T, path string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
}

// stores returns images of one store: as it was after each of n commits.
func stores(t *testing.T, n int) (images [][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	f := open(t, path, boltfile.Options{Init: filled("other")})
	for range n {
		mustPut(t, f, "id", "other")
		images = append(images, readFile(t, path))
	}
	closeFile(t, f)
	return images
}

// within wants a call to return.
func within(t *testing.T, what string, call func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not return", what)
		return nil
	}
}

// openBounded is open without its Close, which waits for what hangs: wantOutOfUse
// closes the file.
func openBounded(t *testing.T, path string, o boltfile.Options) *boltfile.File {
	t.Helper()
	f, err := boltfile.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func acquired(f *boltfile.File) error {
	s, err := f.Acquire()
	if err == nil {
		err = s.Release()
	}
	return err
}

// wantWrittenOver wants an error that says that the file was written over.
func wantWrittenOver(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, boltfile.ErrCorrupt) || !strings.Contains(err.Error(), "written over") {
		t.Errorf("%s: got %v, want an ErrCorrupt that says that the file was written over", what, err)
	}
}

// wantOutOfUse wants that of everything that begins.
func wantOutOfUse(t *testing.T, f *boltfile.File) {
	t.Helper()
	wantWrittenOver(t, "the next Acquire", within(t, "Acquire", func() error { return acquired(f) }))
	wantWrittenOver(t, "the next Update", within(t, "Update", func() error { return put(f, "id", "mine") }))
	if err := within(t, "Close", f.Close); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestReaderDoesNotWaitForANewerStoreThatWasWrittenOverTheFile: nobody commits
// what it shows, neither the next transaction nor a later one.
func TestReaderDoesNotWaitForANewerStoreThatWasWrittenOverTheFile(t *testing.T) {
	for _, image := range stores(t, 4)[1:] {
		for _, commits := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "s.db")
			f := openBounded(t, path, unshared(boltfile.Options{Init: filled("0")}))
			if commits {
				mustPut(t, f, "id", "mine")
			}
			writeOver(t, path, image)
			wantWrittenOver(t, "Acquire", within(t, "Acquire", func() error { return acquired(f) }))
			wantOutOfUse(t, f)
		}
	}
}

// TestCommitDoesNotWaitForItself lets a newer store be written over the file just
// before a commit ends, which is when its state is shared. What the newer one shows
// could be the transaction after that commit.
func TestCommitDoesNotWaitForItself(t *testing.T) {
	newer := stores(t, 2)[1]
	for name, with := range map[string]func(boltfile.Options) boltfile.Options{
		"shared": func(o boltfile.Options) boltfile.Options { return o }, "unshared": unshared,
	} {
		path := filepath.Join(t.TempDir(), "s.db")
		over := false
		f := openBounded(t, path, with(boltfile.Options{Init: filled("0"), Commit: func(tx *bolt.Tx) error {
			err := tx.Commit()
			if over {
				writeOver(t, path, newer)
			}
			return err
		}}))
		over = true
		if err := within(t, name+": Commit", func() error { return put(f, "id", "mine") }); err != nil {
			t.Errorf("%s: the commit was durable before: %v", name, err)
		}
		wantOutOfUse(t, f)
	}
}

// TestWriterDoesNotBelieveAnOlderCopyThatWasWrittenOverTheFile, nor does a commit
// go into one that came after the writer had begun.
func TestWriterDoesNotBelieveAnOlderCopyThatWasWrittenOverTheFile(t *testing.T) {
	for _, begun := range []bool{false, true} {
		images := stores(t, 6)
		for i, older := range images[:5] {
			path := filepath.Join(t.TempDir(), "s.db")
			writeFile(t, path, images[5])
			f := open(t, path, boltfile.Options{})
			if !begun {
				writeOver(t, path, older)
			}
			err := f.Update(func(tx *bolt.Tx) error {
				if begun {
					writeOver(t, path, older)
				}
				return tx.Bucket(bucket).Put([]byte("id"), []byte("mine"))
			})
			wantWrittenOver(t, fmt.Sprintf("image %d, the writer had begun: %v", i, begun), err)
			var failed *boltfile.CommitError
			if begun && (!errors.As(err, &failed) || failed.Outcome != boltfile.NotApplied) {
				t.Errorf("image %d: got %v, want a CommitError that says that nothing is applied", i, err)
			}
			if after := readFile(t, path); !bytes.Equal(after[:len(older)], older) {
				t.Errorf("image %d, the writer had begun: %v: the commit went into it", i, begun)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
