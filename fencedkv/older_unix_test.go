//go:build unix

package fencedkv_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// history returns what a store of one mark and one value was after each commit.
// Pages that were freed are used again, so that a page of the last state is a
// sound one of another state in older images.
func history(t *testing.T, commits int) (images [][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	for i := range commits {
		must(t, s.Resource("r").Put(t.Context(), token(uint64(1+i), ""), b("k"), fmt.Append(nil, i)))
		image, err := os.ReadFile(path)
		must(t, err)
		images = append(images, image)
	}
	must(t, s.Close())
	return images
}

// TestOlderCopyWrittenOverTheOpenFileIsNotBelieved writes each older state of a
// store over its open file. The pages are sound, and the marks in them are lower.
func TestOlderCopyWrittenOverTheOpenFileIsNotBelieved(t *testing.T) {
	const commits = 8
	images := history(t, commits)
	last := images[commits-1]
	path := filepath.Join(t.TempDir(), "s.db")
	for i, older := range images[:commits-1] {
		for _, name := range []string{"Get", "Highest", "Resources", "Check", "Raise", "Put", "Update", "Store.Update", "View"} {
			must(t, os.WriteFile(path, last, 0o600))
			s, err := fencedkv.Open(path, nil)
			must(t, err)
			r := s.Resource("r")
			call := everyCall(s)[name]
			if name == "View" { // this one is open meanwhile
				call = func(ctx context.Context) error {
					return r.View(ctx, func(_ context.Context, tx *fencedkv.ReadTx) error {
						if _, err := tx.Get(b("k")); err != nil {
							t.Errorf("Get: %v", err)
						}
						overwrite(t, path, older)
						v, err := tx.Get(b("k"))
						if err == nil {
							t.Errorf("Get in a View got %q", v)
						}
						return err
					})
				}
			} else {
				wantValue(t, r, "k", fmt.Sprint(commits-1)) // the pages were read before
				overwrite(t, path, older)
			}
			err = call(t.Context())
			if err == nil || !strings.Contains(err.Error(), "written over") {
				t.Errorf("%s after image %d of %d: got %v, want an error that says so", name, i, commits, err)
			}
			wantIs(t, err, fencedkv.ErrCorrupt)
			// The state that it was opened with does not make it right again.
			overwrite(t, path, last)
			for _, name := range []string{"Get", "Put"} {
				wantIs(t, everyCall(s)[name](t.Context()), fencedkv.ErrCorrupt)
			}
			s.Close() // whatever it returns, it returns
		}
	}
}

// A copy that is written over the file while a function of Update runs is found
// before anything is written: what the function has read was right, and the commit
// would stand on something else.
func TestOlderCopyWrittenOverTheFileInAnUpdateIsFoundBeforeItsCommit(t *testing.T) {
	images := history(t, 4)
	path := filepath.Join(t.TempDir(), "s.db")
	must(t, os.WriteFile(path, images[3], 0o600))
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	defer s.Close()
	err = s.Resource("r").Update(t.Context(), token(9, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		overwrite(t, path, images[1])
		return tx.Put(b("k"), b("new"))
	})
	wantIs(t, err, fencedkv.ErrCorrupt)
	after, err := os.ReadFile(path)
	must(t, err)
	if string(after[:len(images[1])]) != string(images[1]) {
		t.Error("the commit has written into the older copy")
	}
}
