//go:build linux || darwin

package fencedkv_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// limitFileSize makes writes fail beyond the size until the returned function
// is called.
func limitFileSize(t *testing.T, size int64) (lift func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	limit := old
	limit.Cur = uint64(size)
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	return func() {
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
		signal.Reset(syscall.SIGXFSZ)
	}
}

func TestFileCutShortIsAnError(t *testing.T) {
	path := filled(t, 1100)
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	must(t, os.Truncate(path, 2*int64(os.Getpagesize())))
	read := func(_ context.Context, tx *fencedkv.ReadTx) error { _, err := tx.Get(b("k")); return err }
	wantIs(t, s.Resource("r").View(t.Context(), read), fencedkv.ErrCorrupt)
	for name, call := range everyCall(s) {
		err := call(t.Context())
		if !errors.Is(err, fencedkv.ErrCorrupt) && name != "Exclusive" && name != "View" { // this View reads nothing
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
	s.Close() // whatever it returns, it returns
}

func TestStoreWithoutRoomWorksAgainWithRoom(t *testing.T) {
	// The limit is one of the process, and the test's own output has a file too.
	const child = "FENCEDKV_TEST_NO_ROOM"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStoreWithoutRoomWorksAgainWithRoom$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("in a process of its own: %v\n%s", err, out)
		}
		return
	}
	noRoom := func(t *testing.T, size func(int64) int64, smallFits bool) {
		path := filepath.Join(t.TempDir(), "s.db")
		r := openAt(t, path, nil).Resource("r")
		must(t, r.Put(t.Context(), token(1, "a"), b("k"), b("v")))
		// The file grows ahead of its need, so that there is room for a small one.
		must(t, r.Put(t.Context(), token(1, "a"), b("first"), make([]byte, 64<<10)))
		info, err := os.Stat(path)
		must(t, err)

		lift := limitFileSize(t, size(info.Size()))
		big := r.Put(t.Context(), token(2, "b"), b("big"), make([]byte, 8<<20))
		small := r.Put(t.Context(), token(1, "a"), b("small"), b("v"))
		got, read := r.Get(t.Context(), b("k"))
		lift()
		wantIs(t, big, syscall.EFBIG)
		if errors.Is(big, fencedkv.ErrFailed) || errors.Is(big, fencedkv.ErrUnknownOutcome) || !strings.Contains(big.Error(), path) {
			t.Errorf("got %v, want an error that names the file and leaves the store usable", big)
		}
		if smallFits {
			must(t, small)
		} else {
			wantIs(t, small, syscall.EFBIG)
		}
		if read != nil || string(got) != "v" {
			t.Errorf("a read without room: %q, %v", got, read)
		}
		wantNone(t, r, "big")
		wantMark(t, r, token(1, "a"))
		must(t, r.Put(t.Context(), token(2, "b"), b("big"), make([]byte, 8<<20)))
		wantIs(t, r.Raise(t.Context(), token(1, "a")), fence.ErrStale)
	}
	t.Run("the file cannot grow", func(t *testing.T) {
		noRoom(t, func(size int64) int64 { return size }, true)
	})
	t.Run("no page can be written", func(t *testing.T) {
		noRoom(t, func(int64) int64 { return int64(os.Getpagesize()) * 2 }, false)
	})
}
