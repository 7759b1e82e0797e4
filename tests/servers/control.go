package servers

import (
	"errors"
	"testing"
	"time"
)

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
	if pid := s.proc.cmd.Process.Pid; !stopped(pid) {
		t.Errorf("servers: Resume: %s, process %d, had not stayed paused", s.prog.name(), pid)
	}
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
