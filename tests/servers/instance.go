package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// instance is a server with its address and directory through all its runs.
// The three kinds of server embed it for the methods of [Server].
type instance struct {
	prog program
	dir  string
	port int

	mu   sync.Mutex
	proc *process // nil when ended by us
}

// newInstance starts a server on a free port. If it cannot, nothing is left.
func newInstance(prog program) (*instance, error) {
	dir, err := os.MkdirTemp("", "fencedkv-"+prog.name()+"-")
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
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
		s.destroy()
		return nil, err
	}
	return s, nil
}

// own gives the instance to the test.
func (s *instance) own(t testing.TB) {
	t.Cleanup(func() {
		s.mu.Lock()
		crashed := s.proc != nil && !s.proc.running()
		s.mu.Unlock()
		if crashed {
			t.Errorf("servers: %s ended by itself: %v", s.prog.name(), s.proc.cmd.ProcessState)
		}
		if t.Failed() {
			t.Logf("servers: log of %s on %s:\n%s", s.prog.name(), s.Addr(), tail(s.logFile()))
		}
		if err := s.destroy(); err != nil {
			t.Errorf("servers: %v", err)
		}
	})
}

func (s *instance) destroy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
	return os.RemoveAll(s.dir)
}

func (s *instance) Addr() string    { return fmt.Sprintf("127.0.0.1:%d", s.port) }
func (s *instance) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *instance) logFile() string { return filepath.Join(s.dir, "log") }

func (s *instance) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.running() {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

func (s *instance) Start(t testing.TB) {
	t.Helper()
	s.restart(t, false, false)
}

func (s *instance) StartEmpty(t testing.TB) {
	t.Helper()
	s.restart(t, true, true)
}

func (s *instance) Restart(t testing.TB) {
	t.Helper()
	s.restart(t, true, false)
}

func (s *instance) restart(t testing.TB, kill, wipe bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc.running() {
		if !kill {
			t.Fatalf("servers: Start: %s on %s is running", s.prog.name(), s.Addr())
		}
		s.proc.kill()
	}
	s.proc = nil
	// The port of the run before may be held for a moment longer.
	deadline := time.Now().Add(readyTimeout)
	for {
		err := s.startLocked(wipe)
		if err == nil {
			return
		}
		if !errors.Is(err, errPortTaken) || time.Now().After(deadline) {
			t.Fatalf("servers: start again: %v", err)
		}
		time.Sleep(pollInterval)
	}
}

func (s *instance) Kill(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustRun(t, "Kill")
	s.proc.kill()
	s.proc = nil
}

func (s *instance) Stop(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustRun(t, "Stop")
	p := s.proc
	s.proc = nil
	_ = resume(p.cmd.Process) // a paused process does not see SIGTERM
	if err := terminate(p.cmd.Process); err != nil {
		p.kill()
		t.Fatalf("servers: Stop: %s: %v", s.prog.name(), err)
	}
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		p.kill()
		t.Fatalf("servers: Stop: %s was still there %v after SIGTERM", s.prog.name(), stopTimeout)
	}
}

func (s *instance) Pause(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustRun(t, "Pause")
	if err := pause(s.proc.cmd.Process); err != nil {
		t.Fatalf("servers: Pause: %s: %v", s.prog.name(), err)
	}
	for deadline := time.Now().Add(stopTimeout); !stopped(s.proc.cmd.Process.Pid); {
		if time.Now().After(deadline) {
			t.Fatalf("servers: Pause: %s still ran %v after SIGSTOP", s.prog.name(), stopTimeout)
		}
		time.Sleep(pollInterval)
	}
}

func (s *instance) Resume(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustRun(t, "Resume")
	if err := resume(s.proc.cmd.Process); err != nil {
		t.Fatalf("servers: Resume: %s: %v", s.prog.name(), err)
	}
}

func (s *instance) mustRun(t testing.TB, step string) {
	t.Helper()
	if !s.proc.running() {
		t.Fatalf("servers: %s: %s on %s is not running", step, s.prog.name(), s.Addr())
	}
}

// errPortTaken is in the error of a start that found its port in use.
var errPortTaken = errors.New("port already in use")

func (s *instance) start(wipe bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startLocked(wipe)
}

func (s *instance) startLocked(wipe bool) error {
	if wipe {
		if err := os.RemoveAll(s.dataDir()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
		return err
	}
	cmd, err := s.prog.command(s.dir, s.port)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	logged, err := log.Seek(0, 2)
	if err != nil {
		return err
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	p, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("%s: %w", s.prog.name(), err)
	}
	if err := s.awaitReady(p); err != nil {
		p.kill()
		news, _ := os.ReadFile(s.logFile())
		if bytes.Contains(bytes.ToLower(news[min(int(logged), len(news)):]), []byte("address already in use")) {
			err = errPortTaken
		}
		return fmt.Errorf("%s on %s: %w; its log ends:\n%s", s.prog.name(), s.Addr(), err, tail(s.logFile()))
	}
	s.proc = p
	return nil
}

func (s *instance) awaitReady(p *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for {
		err := s.prog.ready(ctx, s.Addr())
		if err == nil {
			// Somebody else's server may have answered on a port that ours
			// did not get.
			if !p.running() {
				return fmt.Errorf("ended: %v", p.cmd.ProcessState)
			}
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("ended: %v", p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", readyTimeout, err)
		case <-time.After(pollInterval):
		}
	}
}
