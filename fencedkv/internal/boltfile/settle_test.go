package boltfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

func TestOpenWritesTheCurrentMetaPageAgainAndSyncsBeforeItServes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	closeFile(t, open(t, path, boltfile.Options{Init: filled("one")}))
	seen := map[int]bool{}
	for i := range 4 {
		before := readFile(t, path)
		cur, _ := metas(t, before)
		seen[cur.page] = true
		var events []string
		f := open(t, path, boltfile.WithOps(boltfile.Options{}, boltfile.Ops{
			WriteAt: func(f *os.File, b []byte, off int64) (int, error) {
				same := bytes.Equal(b, before[cur.offset:cur.offset+cur.pageSize])
				events = append(events, fmt.Sprint("write ", off, " ", same))
				return f.WriteAt(b, off)
			},
			Datasync: func(f *os.File) error {
				events = append(events, "datasync")
				return boltfile.Datasync(f)
			},
			SyncDir: func(string) error { events = append(events, "syncdir"); return nil },
			Serve:   func() { events = append(events, "serve") },
		}))
		want := []string{fmt.Sprint("write ", cur.offset, " true"), "datasync", "syncdir", "serve"}
		if !slices.Equal(events, want) {
			t.Errorf("transaction %d in page %d: got %q, want %q", cur.txid, cur.page, events, want)
		}
		if after := readFile(t, path); !bytes.Equal(before, after) {
			t.Errorf("Open changed the file; an empty commit would overwrite the other meta page")
		}
		mustPut(t, f, "k", fmt.Sprint(i))
		closeFile(t, f)
	}
	if len(seen) != 2 {
		t.Errorf("only page %v was ever current; the test must see both", seen)
	}
}

func TestOpenServesNothingIfItCannotSettleTheMetaPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	closeFile(t, open(t, path, boltfile.Options{Init: filled("one")}))
	bad := errors.New("disk on fire")
	for name, ops := range map[string]boltfile.Ops{
		"write":    {WriteAt: func(*os.File, []byte, int64) (int, error) { return 0, bad }},
		"datasync": {Datasync: func(*os.File) error { return bad }},
		"syncdir":  {SyncDir: func(string) error { return bad }},
	} {
		ops.Serve = func() { t.Errorf("%s failed and the file was served", name) }
		_, err := boltfile.Open(path, boltfile.WithOps(boltfile.Options{}, ops))
		if !errors.Is(err, bad) {
			t.Errorf("%s: got %v, want its error", name, err)
		}
		// The lock is free again at once.
		f, err := boltfile.Open(path, boltfile.Options{Timeout: time.Nanosecond})
		if err != nil {
			t.Fatalf("%s: the next Open: %v", name, err)
		}
		closeFile(t, f)
	}
}

func TestDirectoryThatMayNotBeReadDoesNotKeepAnExistingStoreShut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	ops := boltfile.Ops{SyncDir: func(string) error { return &os.PathError{Op: "open", Path: "d", Err: os.ErrPermission} }}
	if _, err := boltfile.Open(path, boltfile.WithOps(boltfile.Options{}, ops)); !errors.Is(err, os.ErrPermission) {
		t.Errorf("creation: got %v, want the error: the name is not durable", err)
	}
	open(t, path, boltfile.WithOps(boltfile.Options{}, ops))
}
