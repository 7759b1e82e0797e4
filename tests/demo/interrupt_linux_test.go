package demo_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// moment is an event to wait for.
type moment struct{ act, step string }

func (m moment) reached(e event) bool {
	return e.Act == m.act && strings.TrimSpace(e.Client+" "+e.Event) == m.step
}

// started is a run that goes on while the test looks at it.
type started struct {
	t      *testing.T
	cmd    *exec.Cmd
	tmp    string
	stdout io.ReadCloser
	lines  *bufio.Scanner
	stderr bytes.Buffer
}

// start starts the demonstration in a process group of its own, as a shell does.
func start(t *testing.T, args ...string) *started {
	t.Helper()
	cmd, tmp := command(t, append([]string{"--json"}, args...)...)
	s := &started{t: t, cmd: cmd, tmp: tmp}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = &s.stderr
	var err error
	if s.stdout, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewScanner(s.stdout)
	return s
}

// await reads events up to the moment.
func (s *started) await(m moment) event {
	s.t.Helper()
	for s.lines.Scan() {
		var e event
		if err := json.Unmarshal(s.lines.Bytes(), &e); err != nil {
			s.t.Fatal(err)
		}
		if m.reached(e) {
			return e
		}
	}
	_ = s.cmd.Wait()
	s.t.Fatalf("%v did not come: %v, %s", m, s.cmd.ProcessState, s.stderr.String())
	return event{}
}

// signalGroup sends what a terminal would.
func (s *started) signalGroup(sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, sig); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the end and returns the exit status, -1 for a signal.
func (s *started) end() int {
	s.t.Helper()
	if _, err := io.Copy(io.Discard, s.stdout); err != nil {
		s.t.Log(err)
	}
	if err := s.cmd.Wait(); err != nil && !isExit(err) {
		s.t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode()
}

// processes lists those that have the run's temporary directory in their
// environment, which all its children have.
func (s *started) processes() (found []string) {
	s.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte("TMPDIR="+s.tmp)) {
			continue // gone meanwhile, or another's
		}
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		found = append(found, fmt.Sprintf("%s: %q", filepath.Dir(file), args))
	}
	return found
}

// checkNothingLeft looks once: the program has ended.
func (s *started) checkNothingLeft() {
	s.t.Helper()
	if left := s.processes(); len(left) > 0 {
		s.t.Errorf("processes left: %v", left)
	}
	if left := filesIn(s.t, s.tmp); len(left) > 0 {
		s.t.Errorf("files left: %v", left)
	}
}

// interrupted presses Ctrl-C at the moment.
func interrupted(t *testing.T, m moment, args ...string) {
	t.Helper()
	if got := pressCtrlC(t, m, args...); got != 130 {
		t.Errorf("Ctrl-C at %v: status %d, want 130", m, got)
	}
}

// pressCtrlC is interrupted, and returns the exit status.
func pressCtrlC(t *testing.T, m moment, args ...string) int {
	t.Helper()
	s := start(t, args...)
	s.await(m)
	s.signalGroup(syscall.SIGINT)
	status := s.end()
	s.checkNothingLeft()
	return status
}

func TestCtrlCAtAnyMomentLeavesNoProcessAndNoFile(t *testing.T) {
	var moments []moment
	for _, step := range unfencedScript {
		moments = append(moments, moment{"unfenced", step})
	}
	for _, step := range []string{"A raised", "A stopped"} {
		moments = append(moments, moment{"fenced", step})
	}
	for _, m := range moments {
		t.Run(m.act+" "+m.step, func(t *testing.T) {
			t.Parallel()
			interrupted(t, m)
		})
	}
	// From here it is milliseconds to the end, which may come first.
	for _, step := range []string{"A continued", "A rejected", "A retrying"} {
		m := moment{"fenced", step}
		t.Run(m.act+" "+m.step, func(t *testing.T) {
			t.Parallel()
			if got := pressCtrlC(t, m); got != 130 && got != 0 {
				t.Errorf("Ctrl-C at %v: status %d, want 130, or 0", m, got)
			}
		})
	}
}

func TestASignalBeforeTheFirstEventLeavesNoProcessAndNoFile(t *testing.T) {
	// Each run is interrupted a little later in its start.
	for i := range 20 {
		s := start(t)
		for deadline := time.Now().Add(time.Duration(i) * 2 * time.Millisecond); time.Now().Before(deadline); {
			if len(filesIn(t, s.tmp)) > 0 && i%2 == 1 {
				break // the temporary directory has just been made
			}
		}
		s.signalGroup(syscall.SIGTERM)
		// Before the program hears signals it ends by them.
		if got := s.end(); got != 130 && got != -1 {
			t.Errorf("run %d: status %d, want 130, or the signal", i, got)
		}
		s.checkNothingLeft()
	}
}

func TestCtrlCDoesNotWaitForASilentService(t *testing.T) {
	for _, scheme := range []string{"redis", "etcd", "zk"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			silent, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			s := start(t, "--ttl=20s", "--lock="+scheme+"://"+silent.Addr().String())
			conn, err := silent.Accept() // and say nothing
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			began := time.Now()
			s.signalGroup(syscall.SIGINT)
			if got := s.end(); got != 130 {
				t.Errorf("status %d, want 130; stderr: %s", got, s.stderr.String())
			}
			// Without the signal it would wait for much of the lease time.
			t.Logf("it took %v", time.Since(began))
			s.checkNothingLeft()
		})
	}
}

func TestAReaderThatHasEnoughEndsItQuietlyAndLeavesNothing(t *testing.T) {
	for _, m := range []moment{{"unfenced", "A acquired"}, {"unfenced", "B acquiring"}} {
		t.Run(m.step, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.await(m)
			s.stdout.Close()
			if got := s.end(); got != 141 || s.stderr.Len() > 0 {
				t.Errorf("status %d, stderr %q; want 141 and nothing", got, s.stderr.String())
			}
			s.checkNothingLeft()
		})
	}
}

// A full disk is not a reader that has gone.
func TestOutputThatCannotBeWrittenIsAnErrorThatNamesIt(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd, tmp := command(t)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	if err := cmd.Run(); err != nil && !isExit(err) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != 1 || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("status %d, stderr %q; want 1 and the reason", got, stderr.String())
	}
	if left := filesIn(t, tmp); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

func TestWithTheParentKilledByForceEvenAStoppedClientEnds(t *testing.T) {
	for _, m := range []moment{{"unfenced", "A read"}, {"unfenced", "A stopped"}, {"fenced", "B acquiring"}} {
		t.Run(m.act+" "+m.step, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.await(m)
			if len(s.processes()) < 4 {
				t.Fatalf("the processes are %v, want four", s.processes())
			}
			if err := s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			s.end()
			ticker := time.NewTicker(5 * time.Millisecond)
			defer ticker.Stop()
			for deadline := time.Now().Add(patience); len(s.processes())+len(filesIn(t, s.tmp)) > 0; <-ticker.C {
				if time.Now().After(deadline) {
					s.checkNothingLeft()
					return
				}
			}
		})
	}
}

func TestTheStoppedClientIsReallyStopped(t *testing.T) {
	s := start(t)
	stopped := s.await(moment{"unfenced", "A stopped"})
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stopped.PID))
	if err != nil {
		t.Fatal(err)
	}
	// pid (command) state ...
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	if !bytes.HasPrefix(state, []byte("T")) {
		t.Errorf("the state of client A is %.1q, want T", state)
	}
	s.signalGroup(syscall.SIGINT)
	s.end()
	s.checkNothingLeft()
}
