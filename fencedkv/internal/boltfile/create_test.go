package boltfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// roleCreate waits for the word, opens the path for creation and says whether it
// created it, which store it got, and which visitor it is.
func roleCreate(args []string) error {
	path, id := args[0], args[1]
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	f, err := boltfile.Open(path, boltfile.Options{Timeout: time.Minute, Init: filled(id)})
	if err != nil {
		return err
	}
	visit := 0
	err = f.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		visit = len(b.Get([]byte("visits"))) + 1
		return b.Put([]byte("visits"), make([]byte, visit))
	})
	if err != nil {
		return err
	}
	store, err := get(f, "id")
	if err != nil {
		return err
	}
	fmt.Println(f.Created(), store, visit)
	return f.Close()
}

func TestFiftyProcessesThatCreateOnePathShareOneStore(t *testing.T) {
	const n = 50
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	var all []*process
	for i := range n {
		p := start(t, "create", path, fmt.Sprint("store-", i))
		all = append(all, p)
	}
	for _, p := range all {
		p.hear(t)
	}
	for _, p := range all {
		p.say(t, "")
	}
	stores, visits := map[string]int{}, map[int]bool{}
	creators := 0
	for i, p := range all {
		var (
			created bool
			store   string
			visit   int
		)
		line := p.hear(t)
		if _, err := fmt.Sscan(line, &created, &store, &visit); err != nil {
			t.Fatalf("process %d said %q: %v", i, line, err)
		}
		if created {
			creators++
		}
		stores[store]++
		visits[visit] = true
		if err := p.end(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	if creators != 1 || len(stores) != 1 {
		t.Errorf("%d processes created the file, stores seen %v; want one", creators, stores)
	}
	for v := 1; v <= n; v++ {
		if !visits[v] {
			t.Errorf("visit %d of %d is missing: somebody wrote to another file", v, n)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"s.db"}) {
		t.Errorf("the directory holds %q, want the store alone", got)
	}
}

func TestCreationNeverReplacesAnExistingName(t *testing.T) {
	for _, mode := range []string{"link", "rename"} {
		path := filepath.Join(t.TempDir(), "s.db")
		raced := false
		race := func() { // somebody else is quicker
			if !raced {
				raced = true
				closeFile(t, open(t, path, boltfile.Options{Init: filled("first")}))
			}
		}
		ops := boltfile.Ops{Link: func(from, to string) error {
			race()
			if mode == "rename" {
				return &os.LinkError{Op: "link", Old: from, New: to, Err: syscall.EPERM}
			}
			return boltfile.Link(from, to)
		}}
		f := open(t, path, boltfile.WithOps(boltfile.Options{Init: filled("second")}, ops))
		if f.Created() {
			t.Errorf("%s: Created is true for the loser of the race", mode)
		}
		wantValue(t, f, "id", "first")
	}
}

func TestWithoutHardLinksCreationRenamesWithoutReplacing(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOSYS} {
		dir := t.TempDir()
		path := filepath.Join(dir, "s.db")
		ops := boltfile.Ops{Link: func(from, to string) error {
			return &os.LinkError{Op: "link", Old: from, New: to, Err: errno}
		}}
		wantValue(t, open(t, path, boltfile.WithOps(boltfile.Options{Init: filled("one")}, ops)), "id", "one")
		if got := names(t, dir); !slices.Equal(got, []string{"s.db"}) {
			t.Errorf("%v: the directory holds %q", errno, got)
		}

		ops.Rename = func(from, to string) error { return &os.LinkError{Op: "renameat2", Err: syscall.EINVAL} }
		other := filepath.Join(dir, "other.db")
		_, err := boltfile.Open(other, boltfile.WithOps(boltfile.Options{}, ops))
		if !errors.Is(err, errno) || !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), other) {
			t.Errorf("%v: got %v, want both errors and the path", errno, err)
		}
		if got := names(t, dir); !slices.Equal(got, []string{"s.db"}) {
			t.Errorf("%v: left behind: %q", errno, got)
		}
	}
}

// roleDie opens the path for creation and is killed at the given step.
func roleDie(args []string) error {
	path, step := args[0], args[1]
	die := func(at string) {
		if at == step {
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			select {}
		}
	}
	ops := boltfile.Ops{
		Sync: func(f *os.File) error {
			die("before sync")
			return f.Sync()
		},
		Link: func(from, to string) error {
			die("before link")
			err := boltfile.Link(from, to)
			die("after link")
			return err
		},
		SyncDir: func(dir string) error {
			die("before the directory's sync")
			return boltfile.SyncDir(dir)
		},
	}
	f, err := boltfile.Open(path, boltfile.WithOps(boltfile.Options{Init: func(tx *bolt.Tx) error {
		err := filled("dead")(tx)
		die("in Init")
		return err
	}}, ops))
	if err != nil {
		return err
	}
	return f.Close()
}

func TestCreatorKilledAtAnyStepLeavesNoStoreOrAWholeOne(t *testing.T) {
	for _, c := range []struct {
		step, id string
		left     int
	}{
		{"in Init", "alive", 1},
		{"before sync", "alive", 1},
		{"before link", "alive", 1},
		{"after link", "dead", 2},
		{"before the directory's sync", "dead", 1},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "s.db")
		p := start(t, "die", path, c.step)
		if err := p.end(); err == nil {
			t.Fatalf("%s: the creator lived on", c.step)
		}
		if got := names(t, dir); len(got) != c.left {
			t.Errorf("%s: left %q, want %d files", c.step, got, c.left)
		}
		f := open(t, path, boltfile.Options{Init: filled("alive")})
		if got, err := get(f, "id"); err != nil || got != c.id {
			t.Errorf("%s: the store is %q, %v; want %q", c.step, got, err, c.id)
		}
		// A second creation clears what the first left under a second name.
		closeFile(t, open(t, filepath.Join(dir, "t.db"), boltfile.Options{}))
		if got := names(t, dir); !slices.Equal(got, []string{"s.db", "t.db"}) {
			t.Errorf("%s: the directory holds %q, want the two stores", c.step, got)
		}
		if got, err := get(f, "id"); err != nil || got != c.id {
			t.Errorf("%s: after the clearing the store is %q, %v; want %q", c.step, got, err, c.id)
		}
	}
}

func TestTemporaryFileOfALivingCreatorIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	slow, quick := filepath.Join(dir, "slow.db"), filepath.Join(dir, "quick.db")
	f := open(t, slow, boltfile.Options{Init: func(tx *bolt.Tx) error {
		before := names(t, dir)
		closeFile(t, open(t, quick, boltfile.Options{}))
		if got := names(t, dir); len(before) != 1 || !slices.Contains(got, before[0]) {
			t.Errorf("%q became %q: the temporary file in use was removed", before, got)
		}
		return filled("slow")(tx)
	}})
	wantValue(t, f, "id", "slow")
}

func TestLeftoversThatAreNoFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	writeFile(t, target, []byte("precious"))
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, ".fencedkv-1.tmp"), 0o700),
		os.Symlink(target, filepath.Join(dir, ".fencedkv-2.tmp")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, dir)
	open(t, filepath.Join(dir, "s.db"), boltfile.Options{})
	if got, want := names(t, dir), append(before, "s.db"); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("%q became %q", before, got)
	}
	if got := string(readFile(t, target)); got != "precious" {
		t.Errorf("the target of a link holds %q", got)
	}
}

func TestCreationSyncsTheFileBeforeItsNameAndThenTheDirectory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	var events []string
	exists := func() bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, fs.ErrNotExist)
	}
	o := boltfile.WithOps(boltfile.Options{Init: func(tx *bolt.Tx) error {
		events = append(events, fmt.Sprint("init ", exists()))
		return filled("one")(tx)
	}}, boltfile.Ops{
		Sync: func(f *os.File) error {
			content, _ := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
			events = append(events, fmt.Sprint("sync ", exists(), " ", strings.Contains(string(content), "one")))
			return f.Sync()
		},
		Link: func(from, to string) error {
			events = append(events, "link "+filepath.Base(to))
			return boltfile.Link(from, to)
		},
		SyncDir: func(d string) error {
			events = append(events, fmt.Sprint("syncdir ", d == dir, " ", exists()))
			return boltfile.SyncDir(d)
		},
		Serve: func() { events = append(events, "serve") },
	})
	open(t, path, o)
	want := []string{"init false", "sync false true", "link s.db", "syncdir true true", "serve"}
	if !slices.Equal(events, want) {
		t.Errorf("got  %q\nwant %q", events, want)
	}
}

func TestCreationThatCannotSyncServesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	bad := errors.New("disk on fire")
	_, err := boltfile.Open(path, boltfile.WithOps(boltfile.Options{}, boltfile.Ops{
		Sync: func(*os.File) error { return bad },
	}))
	if !errors.Is(err, bad) || len(names(t, dir)) != 0 {
		t.Errorf("file's sync: got %v, directory %q; want the error and nothing", err, names(t, dir))
	}
	_, err = boltfile.Open(path, boltfile.WithOps(boltfile.Options{}, boltfile.Ops{
		SyncDir: func(string) error { return bad },
	}))
	if !errors.Is(err, bad) {
		t.Errorf("directory's sync: got %v, want the error", err)
	}
	open(t, path, boltfile.Options{})
}
