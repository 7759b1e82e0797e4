package device_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/faultfs"
)

// volumes make small file systems of their own.
var volumes = map[string]func(t *testing.T, dir string){
	"tmpfs": func(t *testing.T, dir string) {
		must(t, syscall.Mount("device-test", dir, "tmpfs", 0, "size=8m"))
	},
	"ext4": func(t *testing.T, dir string) {
		image := filepath.Join(t.TempDir(), "image")
		must(t, os.WriteFile(image, nil, 0o600))
		must(t, os.Truncate(image, 16<<20))
		command(t, "mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", image)
		command(t, "mount", "-o", "loop", image, dir)
	},
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path = filepath.Join("/usr/sbin", name) // not in the path of every user
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func newVolume(t *testing.T, kind string) (dir string) {
	t.Helper()
	requireMounts(t)
	dir = t.TempDir()
	volumes[kind](t, dir)
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// leave fills the file system but for so many pages, and returns what makes room
// again.
func leave(t *testing.T, dir string, pages int) (makeRoom func()) {
	t.Helper()
	var st syscall.Statfs_t
	must(t, syscall.Statfs(dir, &st))
	size := int64(st.Bavail)*st.Bsize - int64(pages*pageSize)
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	must(t, err)
	defer f.Close()
	if size > 0 {
		must(t, syscall.Fallocate(int(f.Fd()), 0, 0, size))
	}
	return func() { must(t, os.Remove(ballast)) }
}

// TestFullFileSystemRefusesWhatDoesNotFit fills a file system with a store,
// until it refuses, and makes room again.
func TestFullFileSystemRefusesWhatDoesNotFit(t *testing.T) {
	for kind := range volumes {
		t.Run(kind, func(t *testing.T) {
			dir := newVolume(t, kind)
			path := filepath.Join(dir, "store.db")
			makeRoom := leave(t, dir, 1000)
			s, err := openOurs(path)
			must(t, err)
			h := history{worlds: []world{newWorld()}}
			var refusedSizes []int
			for size := large; len(refusedSizes) < 8; { // each time something smaller is tried
				n := len(h.worlds) + len(refusedSizes)
				st := putOf("a", uint64(1+n/2), fmt.Sprint("key ", n), strings.Repeat("x", size))
				got := told(s.do(st))
				h.learn(st, got)
				switch got {
				case applied:
				case noRoom:
					refusedSizes = append(refusedSizes, size)
					size /= 3
				default:
					t.Fatalf("a write of %d bytes, after %d that were acknowledged: told %s", size, len(h.worlds)-1, got)
				}
			}
			healthy(t, s, h)
			makeRoom()
			st := putOf("b", 1, "with room", strings.Repeat("x", large))
			if got := told(s.do(st)); got != applied {
				t.Errorf("with room: told %s", got)
			}
			h.learn(st, applied)
			healthy(t, s, h)
			must(t, s.close())
			wantOpen(t, path, h)
			t.Logf("%d writes fitted; refused were %d bytes", len(h.worlds)-2, refusedSizes)
		})
	}
}

// TestWriteAtTheEdgeOfRoomIsAppliedOrRefused leaves every room from none to
// enough, in pages, for the next write.
func TestWriteAtTheEdgeOfRoomIsAppliedOrRefused(t *testing.T) {
	for kind := range volumes {
		t.Run(kind, func(t *testing.T) {
			dir := newVolume(t, kind)
			e := newEdge(t, filepath.Join(dir, "store.db"))
			got := e.search(t, 1, func(t *testing.T, pages int) func() { return leave(t, dir, pages) },
				putOf("b", 100, "next", strings.Repeat("y", 60_000)))
			t.Logf("told with a room of 0, 1, 2, ... pages: %s", got)
		})
	}
}

// edge is a store that gets little room.
type edge struct {
	path     string
	template []byte // the file
	history  history
}

func newEdge(t *testing.T, path string) *edge {
	t.Helper()
	template := filepath.Join(t.TempDir(), "template.db")
	s, err := openOurs(template)
	must(t, err)
	e := &edge{path: path, history: history{worlds: []world{newWorld()}}}
	for _, st := range sessions()[0][:4] { // little is free for use again
		e.history.learn(st, told(s.do(st)))
	}
	must(t, s.close())
	e.template, err = os.ReadFile(template)
	must(t, err)
	return e
}

// search tries rooms of 0, step, 2*step, ... until three in a row were enough.
func (e *edge) search(t *testing.T, step int, tighten func(t *testing.T, room int) func(), st step) (summary string) {
	t.Helper()
	var all []string
	for room, fits := 0, 0; fits < 3; room += step {
		got := e.try(t, room, tighten, st)
		all = append(all, got)
		if fits++; got != applied {
			fits = 0
		}
		if len(all) > 1000 {
			t.Fatal("no room is enough")
		}
	}
	if all[0] == applied {
		t.Error("it fitted without room")
	}
	for i, n := 0, 0; i < len(all); i += n {
		for n = 0; i+n < len(all) && all[i+n] == all[i]; n++ {
		}
		summary += fmt.Sprintf("%d times %s, ", n, all[i])
	}
	return strings.TrimSuffix(summary, ", ")
}

// try makes one write with little room, and again with enough.
func (e *edge) try(t *testing.T, room int, tighten func(t *testing.T, room int) func(), st step) string {
	t.Helper()
	must(t, saveSparse(e.path, e.template))
	defer os.Remove(e.path)
	h := history{worlds: e.history.worlds[len(e.history.worlds)-1:]}
	loosen := tighten(t, room)
	s, err := openOurs(e.path)
	if err != nil {
		loosen()
		if got := told(err); got != noRoom {
			t.Errorf("room %d: Open: %s", room, got)
		}
		wantOpen(t, e.path, h)
		return "no room to open"
	}
	defer s.close()
	got := told(s.do(st))
	if got != applied && got != noRoom {
		loosen()
		t.Fatalf("room %d: told %s", room, got)
	}
	h.learn(st, got)
	healthy(t, s, h)
	loosen()
	if got == noRoom {
		if again := told(s.do(st)); again != applied {
			t.Errorf("room %d, then enough: told %s", room, again)
		}
		h.learn(st, applied)
	}
	healthy(t, s, h)
	must(t, s.close())
	wantOpen(t, e.path, h)
	return got
}

// healthy checks that a store reads what was acknowledged, and refuses.
func healthy(t *testing.T, s subject, h history) {
	t.Helper()
	got, err := readWorld(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.admits(got); err != nil {
		t.Fatal(err)
	}
	stale := step{call: raise, claims: []claim{{"a", h.last()["a"].seq, "somebody else"}}}
	if got := told(s.do(stale)); got != refused {
		t.Errorf("a token of somebody else: told %s", got)
	}
}

// wantOpen checks that a fresh Open finds what was acknowledged.
func wantOpen(t *testing.T, path string, h history) {
	t.Helper()
	s, err := openOurs(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	must(t, s.check())
	healthy(t, s, h)
}

// saveSparse writes a file, with holes where there are only zeros.
func saveSparse(path string, data []byte) error {
	f := faultfs.Inode{Number: 1}
	i := faultfs.Image{Files: map[faultfs.Inode][]byte{f: data}, Names: map[string]faultfs.Inode{filepath.Base(path): f}}
	return i.Save(filepath.Dir(path))
}
