//go:build linux || darwin

package fencedkv_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"

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
	for name, call := range everyCall(s) {
		if err := call(t.Context()); !errors.Is(err, fencedkv.ErrCorrupt) && name != "Exclusive" {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
	s.Close() // whatever it returns, it returns
}

func TestFailedCommitFailsTheStore(t *testing.T) {
	// The limit is one of the process, and the test's own output has a file too.
	const child = "FENCEDKV_TEST_FAILED_COMMIT"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFailedCommitFailsTheStore$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("in a process of its own: %v\n%s", err, out)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "s.db")
	var log bytes.Buffer
	s, err := fencedkv.Open(path, &fencedkv.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	must(t, err)
	r := s.Resource("r")
	must(t, r.Put(t.Context(), token(1, "a"), b("k"), b("v")))

	info, err := os.Stat(path)
	must(t, err)
	lift := limitFileSize(t, info.Size())
	err = r.Put(t.Context(), token(2, "b"), b("big"), make([]byte, 8<<20))
	lift()
	wantIs(t, err, fencedkv.ErrUnknownOutcome)
	if !strings.Contains(log.String(), path) || !strings.Contains(log.String(), "[ERROR]") {
		t.Errorf("the log says %q, want an error that names the file", log.String())
	}
	for name, call := range everyCall(s) {
		if err := call(t.Context()); !errors.Is(err, fencedkv.ErrFailed) && name != "Exclusive" {
			t.Errorf("%s after a failed commit: got %v, want ErrFailed", name, err)
		}
	}
	must(t, s.Close())

	r = openAt(t, path, nil).Resource("r")
	wantValue(t, r, "k", "v")
	m, err := r.Highest(t.Context())
	must(t, err)
	_, err = r.Get(t.Context(), b("big"))
	whole := m.Token == token(2, "b") && err == nil
	nothing := m.Token == token(1, "a") && errors.Is(err, fencedkv.ErrNotFound)
	if !whole && !nothing {
		t.Errorf("after reopening: mark %v, Get(big) %v; want all of the write or nothing", m, err)
	}
	must(t, r.Put(t.Context(), token(2, "b"), b("big"), make([]byte, 8<<20)))
	wantIs(t, r.Raise(t.Context(), token(1, "a")), fence.ErrStale)
}
