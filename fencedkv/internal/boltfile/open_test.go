package boltfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestOpenCreatesACompletePrivateFileAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	f := open(t, path, boltfile.Options{Init: filled("one")})
	wantValue(t, f, "id", "one")
	if !f.Created() || f.RecoveredLostCommit() || f.Path() != path {
		t.Errorf("Created %v, RecoveredLostCommit %v, Path %q", f.Created(), f.RecoveredLostCommit(), f.Path())
	}
	if got, want := names(t, dir), []string{"s.db"}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %q, want %q", got, want)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestReopenKeepsTheContentAndDoesNotInitialise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	f := open(t, path, boltfile.Options{Init: filled("one")})
	mustPut(t, f, "k", "v")
	closeFile(t, f)
	closeFile(t, f)

	f = open(t, path, boltfile.Options{Init: filled("two")})
	if f.Created() {
		t.Error("Created is true for a file that was there")
	}
	wantValue(t, f, "id", "one")
	wantValue(t, f, "k", "v")
}

func TestSymbolicLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "s.db"), filepath.Join(dir, "link")
	closeFile(t, open(t, path, boltfile.Options{Init: filled("one")}))
	if err := os.Symlink("s.db", link); err != nil {
		t.Fatal(err)
	}
	wantValue(t, open(t, link, boltfile.Options{}), "id", "one")
}

func TestPathThatCannotBeAStoreIsNamed(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, l := range []string{"dangling", "loop"} {
		target := map[string]string{"dangling": "nowhere", "loop": "loop"}[l]
		if err := os.Symlink(target, at(l)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, at("file"), []byte("text"))
	for _, c := range []struct{ path, want string }{
		{"", "path is empty"},
		{dir, "is a directory"},
		{at("missing/s.db"), "does not exist; create it first"},
		{at("dangling"), "symbolic link to nowhere"},
		{at("loop"), "loop"},
		{at("file/s.db"), "file/s.db"},
		{os.DevNull, "not a regular file"},
	} {
		_, err := boltfile.Open(c.path, boltfile.Options{Init: filled("one")})
		if err == nil {
			t.Errorf("Open(%q) succeeded", c.path)
			continue
		}
		if got := err.Error(); !strings.Contains(got, c.want) || !strings.Contains(got, c.path) {
			t.Errorf("Open(%q): %v; want the path and %q", c.path, got, c.want)
		}
	}
	if _, err := os.Lstat(at("nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store was created through a symbolic link: %v", err)
	}
}

func TestNegativeTimeoutIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	_, err := boltfile.Open(path, boltfile.Options{Timeout: -time.Second})
	if err == nil || !strings.Contains(err.Error(), "Timeout") {
		t.Errorf("got %v, want an error that names Timeout", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made nevertheless: %v", err)
	}
}

func TestFileOfAnotherKindIsErrFormatAndLeftAlone(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "",
		"text":  "hello",
		"long":  strings.Repeat("some other program's data\n", 5000),
		"zeros": strings.Repeat("\x00", 64<<10),
		"other": "SQLite format 3\x00" + strings.Repeat("\x00\x01\x02", 20000),
	} {
		path := filepath.Join(t.TempDir(), name)
		writeFile(t, path, []byte(content))
		_, err := boltfile.Open(path, boltfile.Options{Init: filled("one"), AcceptLostCommit: true})
		var format *boltfile.FormatError
		if !errors.Is(err, boltfile.ErrFormat) || !errors.As(err, &format) || format.Path != path {
			t.Errorf("%s: got %v, want a FormatError that names the file", name, err)
		}
		if got := string(readFile(t, path)); got != content {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestInitThatFailsPublishesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	boom := errors.New("boom")
	_, err := boltfile.Open(path, boltfile.Options{Init: func(*bolt.Tx) error { return boom }})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want the error of Init with the path", err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}

	func() {
		defer func() {
			if p := recover(); p != any(boom) {
				t.Errorf("recovered %v, want the panic of Init", p)
			}
		}()
		boltfile.Open(path, boltfile.Options{Init: func(*bolt.Tx) error { panic(boom) }})
	}()
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind by a panic: %q", got)
	}
	open(t, path, boltfile.Options{Init: filled("one")})
}

func TestLoggerHearsOfCreationAndOfALossButNotOfTheData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	var log bytes.Buffer
	o := boltfile.Options{
		Init: filled("secret"), AcceptLostCommit: true,
		Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace}),
	}
	closeFile(t, open(t, path, o))
	if got := log.String(); !strings.Contains(got, "created") || !strings.Contains(got, path) {
		t.Errorf("the log says %q, want the creation of %s", got, path)
	}
	log.Reset()
	content := readFile(t, path)
	content[headerSize] ^= 1
	writeFile(t, path, content)
	closeFile(t, open(t, path, o))
	if got := log.String(); !strings.Contains(got, "WARN") || !strings.Contains(got, "meta page") {
		t.Errorf("the log says %q, want a warning of the invalid meta page", got)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log tells a value: %q", log.String())
	}
}
