package boltfile_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// twoCommits makes a closed file whose last transaction set k to "last" and the
// one before to "before", and whose current meta page is the wanted one.
func twoCommits(t *testing.T, page int) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s.db")
	f := open(t, path, boltfile.Options{Init: filled("one")})
	mustPut(t, f, "k", "before")
	mustPut(t, f, "k", "last")
	if cur, _ := metas(t, readFile(t, path)); cur.page != page {
		mustPut(t, f, "k", "before")
		mustPut(t, f, "k", "last")
		mustPut(t, f, "k", "before")
		mustPut(t, f, "k", "last")
		mustPut(t, f, "pad", "x")
		mustPut(t, f, "k", "before")
		mustPut(t, f, "k", "last")
	}
	closeFile(t, f)
	content = readFile(t, path)
	if cur, _ := metas(t, content); cur.page != page {
		t.Fatalf("the current meta page is %d, want %d", cur.page, page)
	}
	return path, content
}

func TestOneInvalidMetaPageIsErrCorruptUnlessAccepted(t *testing.T) {
	for page := range 2 {
		path, sound := twoCommits(t, page)
		cur, other := metas(t, sound)
		for _, c := range []struct {
			name   string
			broken rawMeta
			want   string
		}{
			{"current", cur, "before"},
			{"other", other, "last"},
		} {
			for _, at := range []int{0, 4, 8, 16, 48, 56, 63} { // magic, version, ..., checksum
				content := bytes.Clone(sound)
				content[c.broken.offset+headerSize+at] ^= 1
				writeFile(t, path, content)

				_, err := boltfile.Open(path, boltfile.Options{Timeout: time.Nanosecond})
				var e *boltfile.CorruptError
				if !errors.Is(err, boltfile.ErrCorrupt) || !errors.As(err, &e) || !e.LostCommit {
					t.Fatalf("%s meta page %d, byte %d: got %v, want a CorruptError with LostCommit",
						c.name, c.broken.page, at, err)
				}
				for _, want := range []string{path, "may be of transaction", "AcceptLostCommit"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q does not say %q", err, want)
					}
				}
				if !bytes.Equal(readFile(t, path), content) {
					t.Errorf("%s meta page: the refused file was changed", c.name)
				}

				accept := boltfile.Options{Timeout: time.Nanosecond, AcceptLostCommit: true}
				f := open(t, path, accept)
				if !f.RecoveredLostCommit() {
					t.Errorf("%s meta page: RecoveredLostCommit is false", c.name)
				}
				wantValue(t, f, "k", c.want)
				mustPut(t, f, "after", "x")
				closeFile(t, f)

				f = open(t, path, boltfile.Options{}) // the commit replaced the page
				if f.RecoveredLostCommit() {
					t.Errorf("%s meta page: RecoveredLostCommit is still true", c.name)
				}
				wantValue(t, f, "k", c.want)
				wantValue(t, f, "after", "x")
				closeFile(t, f)
			}
		}
	}
}

func TestSoundFileNeedsNoAcceptance(t *testing.T) {
	path, _ := twoCommits(t, 0)
	if f := open(t, path, boltfile.Options{AcceptLostCommit: true}); f.RecoveredLostCommit() {
		t.Error("RecoveredLostCommit is true for a sound file")
	}
}

func TestTwoInvalidMetaPagesAreErrCorruptAlways(t *testing.T) {
	path, sound := twoCommits(t, 0)
	cur, other := metas(t, sound)
	for name, spoil := range map[string]func(b []byte, m rawMeta){
		"checksum": func(b []byte, m rawMeta) { b[m.offset+headerSize+56] ^= 1 },
		"magic":    func(b []byte, m rawMeta) { b[m.offset+headerSize] ^= 1 },
		"zeros":    func(b []byte, m rawMeta) { clear(b[m.offset : m.offset+m.pageSize]) },
	} {
		content := bytes.Clone(sound)
		spoil(content, cur)
		spoil(content, other)
		writeFile(t, path, content)
		for _, accept := range []bool{false, true} {
			_, err := boltfile.Open(path, boltfile.Options{AcceptLostCommit: accept})
			var e *boltfile.CorruptError
			if !errors.Is(err, boltfile.ErrCorrupt) || !errors.As(err, &e) || e.LostCommit || e.Path != path {
				t.Errorf("%s, accept %v: got %v, want a CorruptError without LostCommit", name, accept, err)
			}
		}
	}
}

func TestMetaPageThatContradictsTheFileIsErrCorrupt(t *testing.T) {
	path, sound := twoCommits(t, 0)
	cur, other := metas(t, sound)
	const pageSize, root, freelist, pages = 8, 16, 32, 40
	for _, c := range []struct {
		name  string
		field int
		value uint64
		meta  rawMeta
		want  error
	}{
		{"root in a meta page", root, 1, cur, boltfile.ErrCorrupt},
		{"root past the end", root, 1 << 40, cur, boltfile.ErrCorrupt},
		{"root is the free list", root, uint64(cur.freelist), cur, boltfile.ErrCorrupt},
		{"free list past the end", freelist, 1 << 62, cur, boltfile.ErrCorrupt},
		{"free list is the root", freelist, uint64(cur.root), cur, boltfile.ErrCorrupt},
		{"no free list", freelist, 1<<64 - 1, cur, boltfile.ErrFormat},
		{"more pages than the file", pages, 1 << 50, cur, boltfile.ErrCorrupt},
		{"page size 8 KiB in one", pageSize, 8 << 10, other, boltfile.ErrCorrupt},
	} {
		content := bytes.Clone(sound)
		setMeta(content, c.meta, c.field, c.value)
		writeFile(t, path, content)
		_, err := boltfile.Open(path, boltfile.Options{Timeout: time.Nanosecond})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %v with the path", c.name, err, c.want)
		}
	}
}

func TestAnotherVersionOfTheFormatIsErrFormat(t *testing.T) {
	path, content := twoCommits(t, 0)
	cur, other := metas(t, content)
	const magicAndVersion = 0
	for _, m := range []rawMeta{cur, other} {
		setMeta(content, m, magicAndVersion, 3<<32|0xED0CDAED)
	}
	writeFile(t, path, content)
	_, err := boltfile.Open(path, boltfile.Options{})
	if !errors.Is(err, boltfile.ErrFormat) || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("got %v, want ErrFormat that names version 3", err)
	}
}

func TestFileOfAnyPageSizeIsRead(t *testing.T) {
	for _, size := range []int{1 << 10, 4 << 10, 16 << 10, 64 << 10} {
		path := filepath.Join(t.TempDir(), "s.db")
		makeBolt(t, path, size)
		f := open(t, path, boltfile.Options{})
		wantValue(t, f, "id", "made")
		closeFile(t, f)

		content := readFile(t, path)
		content[headerSize+60] ^= 1 // page 0, which would tell the page size
		writeFile(t, path, content)
		if _, err := boltfile.Open(path, boltfile.Options{}); !errors.Is(err, boltfile.ErrCorrupt) {
			t.Errorf("page size %d, meta page 0 invalid: got %v, want ErrCorrupt", size, err)
		}
		f = open(t, path, boltfile.Options{AcceptLostCommit: true})
		if _, err := get(f, "id"); err != nil && !strings.Contains(err.Error(), "missing") {
			t.Errorf("page size %d: %v", size, err)
		}
	}
}
