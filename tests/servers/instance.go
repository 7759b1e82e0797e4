package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	readyTimeout = 60 * time.Second // a JVM start on a busy machine takes seconds
	stopTimeout  = 20 * time.Second
	pollInterval = 5 * time.Millisecond
)

// program is what tells one kind of server from another.
type program interface {
	// name for messages, like "redis-server".
	name() string
	// command writes what the server needs into dir and returns the command
	// that runs it in the foreground. Data goes below dir/data.
	command(dir string, port int) (*exec.Cmd, error)
	// ready asks the server on addr once; nil means it serves.
	ready(ctx context.Context, addr string) error
}

// orDefaults are the options given, or none.
func orDefaults[T any](opts *T) T {
	if opts == nil {
		opts = new(T)
	}
	return *opts
}

// writeConfig writes a server's configuration into dir and returns its path.
func writeConfig(dir, name string, lines []string) (string, error) {
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// instance is a server with its address and directory through all its runs.
// The three kinds of server embed it for the methods of [Server].
type instance struct {
	prog program
	dir  workDir
	port int

	mu   sync.Mutex
	proc *process // nil when ended by us
}

// newInstance starts a server on a free port. If it cannot, nothing is left.
func newInstance(prog program) (*instance, error) {
	dir, err := newWorkDir(prog.name())
	if err != nil {
		return nil, err
	}
	s := &instance{prog: prog, dir: dir}
	// Somebody else may take the port between our look and the server's bind.
	for range 5 {
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.start(true); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.destroy())
	}
	return s, nil
}

// own gives the instance to the test, unless it could not be started.
func own(t testing.TB, s *instance, err error) *instance {
	t.Helper()
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		s.mu.Lock()
		p := s.proc
		s.mu.Unlock()
		if p != nil && !p.running() {
			t.Errorf("servers: %s ended by itself: %v", s.prog.name(), p.cmd.ProcessState)
		}
		if t.Failed() {
			t.Logf("servers: log of %s on %s:\n%s", s.prog.name(), s.Addr(), tail(s.logFile()))
		}
		if err := s.destroy(); err != nil {
			t.Errorf("servers: %v", err)
		}
	})
	return s
}

func (s *instance) destroy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
	return s.dir.remove()
}

func (s *instance) Addr() string    { return fmt.Sprintf("127.0.0.1:%d", s.port) }
func (s *instance) dataDir() string { return filepath.Join(s.dir.path, "data") }
func (s *instance) logFile() string { return filepath.Join(s.dir.path, "log") }

func (s *instance) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.running() {
		return 0
	}
	return s.proc.cmd.Process.Pid
}
