package crash_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/fencedkv/fencedkv/tests/internal/faultfs"
)

// requireFUSE skips where there is no FUSE, or no right to mount it.
func requireFUSE(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil || os.Geteuid() != 0 {
		t.Skipf("recording writes and syncs needs root and /dev/fuse: %v", err)
	}
	f.Close()
}

// fate is what becomes of a change that is about to be made.
type fate int

const (
	happens fate = iota
	fails        // the device says so
	dies         // the process does, before the change
)

// session is a mounted file system that records.
type session struct {
	mount    string
	recorder faultfs.Recorder
	server   *fuse.Server
}

// newSession mounts a file system whose files are those of the image.
func newSession(t *testing.T, start faultfs.Image) *session {
	t.Helper()
	backing, mount := t.TempDir(), t.TempDir()
	if err := start.Save(backing); err != nil {
		t.Fatal(err)
	}
	s := &session{mount: mount}
	server, err := faultfs.Mount(backing, mount, &s.recorder)
	if err != nil {
		t.Fatal(err)
	}
	s.server = server
	t.Cleanup(func() { s.end(t) })
	return s
}

func (s *session) end(t *testing.T) {
	if s.server == nil {
		return
	}
	if err := s.server.Unmount(); err != nil {
		t.Errorf("unmount: %v", err)
	}
	s.server.Wait()
	s.server = nil
}

// run runs a child to its end, which may come with the change at hand, and returns
// what it did and what it met.
func (s *session) run(t *testing.T, l load, of func(faultfs.Change) fate) ([]faultfs.Change, fate) {
	t.Helper()
	l.Path, l.Notes = filepath.Join(s.mount, "store.db"), filepath.Join(s.mount, faultfs.NotesName)
	cmd := l.command(t)
	var out strings.Builder
	cmd.Stderr = &out
	met := happens
	started := make(chan struct{})
	var changes []faultfs.Change
	s.recorder.Set(faultfs.Rules{
		Decide: func(c faultfs.Change) faultfs.Fate {
			switch next := of(c); next {
			case fails:
				met = next
				return faultfs.Fate{Errno: syscall.EIO}
			case dies:
				met = next
				<-started
				_ = cmd.Process.Kill()
				return faultfs.Fate{Ends: true}
			}
			return faultfs.Fate{}
		},
		Did: func(c faultfs.Change) { changes = append(changes, c) },
	})
	err := cmd.Start()
	close(started)
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	s.recorder.Set(faultfs.Rules{})
	exit := (*exec.ExitError)(nil)
	expected := errors.As(err, &exit) && (met == dies || met == fails && exit.ExitCode() == deviceFailed)
	if err != nil && !expected {
		t.Fatalf("the child of %s: %v\n%s", l.Kind, err, &out)
	}
	return changes, met
}
