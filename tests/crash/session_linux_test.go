package crash_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
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

// session is a mounted file system that records. Only child processes may use
// what is mounted: a goroutine of this one that waits for its own file system in
// a page fault would stop the server's.
type session struct {
	mount    string
	recorder *recorder
	server   *fuse.Server
}

// newSession mounts a file system whose files are those of the image.
func newSession(t *testing.T, start image) *session {
	t.Helper()
	backing, mount := t.TempDir(), t.TempDir()
	if err := start.save(backing); err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(backing, &st); err != nil {
		t.Fatal(err)
	}
	s := &session{mount: mount, recorder: &recorder{}}
	root := &node{
		LoopbackNode: fs.LoopbackNode{RootData: &fs.LoopbackRoot{Path: backing, Dev: st.Dev}},
		recorder:     s.recorder,
	}
	server, err := fs.Mount(mount, root, &fs.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true, FsName: "crash-test", Name: "recorder", DisableXAttrs: true,
	}})
	if err != nil {
		t.Fatalf("mount: %v", err)
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
func (s *session) run(t *testing.T, l load, of func(change) fate) ([]change, fate) {
	t.Helper()
	l.Path, l.Notes = filepath.Join(s.mount, "store.db"), filepath.Join(s.mount, notesName)
	cmd := l.command(t)
	var out strings.Builder
	cmd.Stderr = &out
	met := happens
	started := make(chan struct{})
	s.recorder.take(func(c change) fate {
		next := of(c)
		if next != happens {
			met = next
		}
		if next == dies {
			<-started
			_ = cmd.Process.Kill()
		}
		return next
	})
	err := cmd.Start()
	close(started)
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	changes := s.recorder.take(nil)
	exit := (*exec.ExitError)(nil)
	expected := errors.As(err, &exit) && (met == dies || met == fails && exit.ExitCode() == deviceFailed)
	if err != nil && !expected {
		t.Fatalf("the child of %s: %v\n%s", l.Kind, err, &out)
	}
	return changes, met
}
