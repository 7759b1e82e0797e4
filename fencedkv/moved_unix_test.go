//go:build unix

package fencedkv_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// TestFileThatIsNoLongerAtItsPathIsNotWrittenTo: whoever opens the path would find
// another file, and two stores would each believe that they are the one.
func TestFileThatIsNoLongerAtItsPathIsNotWrittenTo(t *testing.T) {
	for name, move := range map[string]func(t *testing.T, path, away string){
		"renamed": func(t *testing.T, path, away string) { must(t, os.Rename(path, away)) },
		"removed": func(t *testing.T, path, away string) {
			must(t, os.Link(path, away)) // what was open, to look into
			must(t, os.Remove(path))
		},
		"replaced": func(t *testing.T, path, away string) {
			must(t, os.Rename(path, away))
			other, err := fencedkv.Open(path, nil) // which finds nobody there
			must(t, err)
			must(t, other.Close())
		},
		"its directory renamed": func(t *testing.T, path, away string) {
			must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"-2"))
			must(t, os.Rename(filepath.Join(filepath.Dir(path)+"-2", filepath.Base(path)), away))
		},
		"its link led elsewhere": func(t *testing.T, path, away string) {
			must(t, os.Rename(path, away))
			must(t, os.Symlink("nowhere", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, away := filepath.Join(dir, "d", "s.db"), filepath.Join(dir, "away.db")
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			s, err := fencedkv.Open(path, nil)
			must(t, err)
			defer s.Close()
			r := s.Resource("r")
			must(t, r.Put(t.Context(), token(1, "a"), b("k"), b("v")))
			move(t, path, away)
			before, err := os.ReadFile(away)
			must(t, err)

			for call, write := range writers(r, s) {
				err := write(t.Context(), token(2, "b"))
				if !errors.Is(err, fencedkv.ErrMoved) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "close it") {
					t.Errorf("%s: got %v, want ErrMoved with the path and the remedy", call, err)
				}
			}
			ran := false
			err = r.Update(t.Context(), token(2, "b"), func(context.Context, *fencedkv.Tx) error { ran = true; return nil })
			wantIs(t, err, fencedkv.ErrMoved)
			if ran {
				t.Error("the function of Update ran")
			}
			// Reads go on, and so do refusals, which need no write.
			wantValue(t, r, "k", "v")
			wantMark(t, r, token(1, "a"))
			if after, err := os.ReadFile(away); err != nil || string(after) != string(before) {
				t.Errorf("the file was written to: %v", err)
			}

			// It is not out of use: it goes on when it is back.
			must(t, os.RemoveAll(filepath.Dir(path)))
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			must(t, os.Rename(away, path))
			must(t, r.Put(t.Context(), token(2, "b"), b("k"), b("w")))
			wantValue(t, r, "k", "w")
			must(t, s.Close())
			checkFile(t, path)
		})
	}
}

func TestFileMayBeOpenByARelativePathAndByALink(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	s := openAt(t, filepath.Join(dir, "real", "s.db"), nil)
	must(t, s.Close())
	must(t, os.Symlink(filepath.Join("real", "s.db"), filepath.Join(dir, "link.db")))
	t.Chdir(dir)
	s = openAt(t, "link.db", nil)
	must(t, s.Resource("r").Put(t.Context(), token(1, "a"), b("k"), b("v")))
	// The program may go elsewhere.
	t.Chdir(filepath.Join(dir, "real"))
	must(t, s.Resource("r").Put(t.Context(), token(2, "a"), b("k"), b("w")))
	t.Chdir(dir)
	must(t, s.Close())
}
