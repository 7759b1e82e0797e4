package boltfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

func TestSecondOpenInThisProcessIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "s.db"), filepath.Join(dir, "other")
	f := open(t, path, boltfile.Options{Init: filled("one")})
	if err := os.Symlink(path, filepath.Join(dir, "symlink")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, filepath.Join(dir, "hardlink")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, p := range []string{path, "s.db", "./s.db", "symlink", "hardlink"} {
		_, err := boltfile.Open(p, boltfile.Options{Timeout: 5 * time.Second})
		var e *boltfile.InUseError
		if !errors.Is(err, boltfile.ErrInUse) || !errors.As(err, &e) {
			t.Fatalf("Open(%q): got %v, want an InUseError", p, err)
		}
		if !e.ThisProcess || e.OpenAs != path || !strings.Contains(err.Error(), "this process") {
			t.Errorf("Open(%q): got %+v, want this process, which opened it as %s", p, e, path)
		}
		if e.Waited != 0 {
			t.Errorf("Open(%q) waited %v for a file that this process cannot give up meanwhile", p, e.Waited)
		}
	}
	open(t, other, boltfile.Options{})
	closeFile(t, f)
	closeFile(t, open(t, "hardlink", boltfile.Options{}))
}

func TestManyOpensInThisProcessServeOneFileToOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	const n = 16
	files, errs := make([]*boltfile.File, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			files[i], errs[i] = boltfile.Open(path, boltfile.Options{Init: filled(strconv.Itoa(i)), Timeout: time.Minute})
		})
	}
	wg.Wait()
	opened := 0
	for i := range n {
		if errs[i] == nil {
			opened++
			closeFile(t, files[i])
		} else if !errors.Is(errs[i], boltfile.ErrInUse) {
			t.Errorf("Open %d: %v, want ErrInUse", i, errs[i])
		}
	}
	if opened != 1 {
		t.Errorf("%d of %d were served, want 1", opened, n)
	}
}

func TestAnotherProcessThatHoldsTheFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	p := start(t, "hold", path)
	p.hear(t)
	_, err := boltfile.Open(path, boltfile.Options{Timeout: 30 * time.Millisecond})
	var e *boltfile.InUseError
	if !errors.Is(err, boltfile.ErrInUse) || !errors.As(err, &e) {
		t.Fatalf("got %v, want an InUseError", err)
	}
	if e.Path != path || e.ThisProcess || e.Waited < 30*time.Millisecond {
		t.Errorf("got %+v, want %s in use by another process, waited 30ms", e, path)
	}
	if runtime.GOOS == "linux" {
		pid := p.cmd.Process.Pid
		if e.PID != pid || e.Process == "" || !strings.Contains(err.Error(), strconv.Itoa(pid)) {
			t.Errorf("got process %d %q in %q, want %d and its name", e.PID, e.Process, err, pid)
		}
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	open(t, path, boltfile.Options{})
}

func TestTheDefaultWaitIsFinite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	p := start(t, "hold", path)
	p.hear(t)
	_, err := boltfile.Open(path, boltfile.Options{})
	var e *boltfile.InUseError
	if !errors.As(err, &e) || e.Waited < boltfile.DefaultTimeout {
		t.Errorf("got %v, want an InUseError after %v", err, boltfile.DefaultTimeout)
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenWaitsForAnotherProcessToClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	p := start(t, "hold", path)
	p.hear(t)
	var once sync.Once
	o := boltfile.WithOps(boltfile.Options{Timeout: time.Minute}, boltfile.Ops{
		Waiting: func() { once.Do(func() { p.in.Close() }) },
	})
	open(t, path, o)
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
}

func TestFileThatThisProcessHoldsByOtherMeansSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = boltfile.Open(path, boltfile.Options{Timeout: time.Nanosecond})
	var e *boltfile.InUseError
	if !errors.As(err, &e) || runtime.GOOS == "linux" && !e.ThisProcess {
		t.Errorf("got %v, want an InUseError by this process", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, boltfile.Options{})
}

// replace puts another complete store in the place of path.
func replace(t *testing.T, path, id string) {
	t.Helper()
	next := path + ".next"
	closeFile(t, open(t, next, boltfile.Options{Init: filled(id)}))
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func TestWaiterIsNotServedAFileThatLostItsName(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"replaced": func(t *testing.T, path string) { replace(t, path, "new") },
		"replaced and spoilt": func(t *testing.T, path string) {
			old, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer old.Close()
			replace(t, path, "new")
			if err := old.Truncate(100); err != nil { // nobody's business any more
				t.Fatal(err)
			}
		},
		"removed": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		path := filepath.Join(t.TempDir(), "s.db")
		closeFile(t, open(t, path, boltfile.Options{Init: filled("old")}))
		holder, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		var once sync.Once
		o := boltfile.WithOps(boltfile.Options{Timeout: time.Minute, Init: filled("new")}, boltfile.Ops{
			Waiting: func() {
				once.Do(func() {
					change(t, path)
					holder.Close()
				})
			},
		})
		f := open(t, path, o)
		if got, err := get(f, "id"); err != nil || got != "new" {
			t.Errorf("%s while waiting: served %q, %v; want the file that has the name", name, got, err)
		}
	}
}

func TestFileReplacedWhileItIsOpenedIsNotServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	closeFile(t, open(t, path, boltfile.Options{Init: filled("old")}))
	var once sync.Once
	o := boltfile.WithOps(boltfile.Options{Timeout: time.Minute}, boltfile.Ops{
		Serve: func() { once.Do(func() { replace(t, path, "new") }) },
	})
	wantValue(t, open(t, path, o), "id", "new")
}

func TestFileReplacedForEverEndsWithTheTimeout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	closeFile(t, open(t, path, boltfile.Options{Init: filled("old")}))
	o := boltfile.WithOps(boltfile.Options{Timeout: 50 * time.Millisecond}, boltfile.Ops{
		Serve: func() { replace(t, path, "new") },
	})
	_, err := boltfile.Open(path, o)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("got %v, want an error that names the file and says it was replaced", err)
	}
	open(t, path, boltfile.Options{})
}
