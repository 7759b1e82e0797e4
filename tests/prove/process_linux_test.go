package prove_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// process is this binary, started again in a role.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	exited chan struct{} // closed when it is gone and waited for
}

// start starts a process, which is killed when the test ends. The process has
// files from descriptor 3.
func start(t *testing.T, role, name string, config any, stdout *os.File, files ...*os.File) *process {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: name, cmd: exec.Command(os.Args[0], name), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role, configVariable+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = stdout, t.Output(), files
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(p.exited)
		_ = p.cmd.Wait() // the state is in cmd.ProcessState
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill() // an error says that it has already ended
		<-p.exited
	})
	return p
}

// running tells whether the process is still there, stopped or not.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// tellToEnd lets the process end by itself.
func (p *process) tellToEnd() { _ = p.stdin.Close() }

// requireEnd waits until the process has ended well.
func (p *process) requireEnd(t *testing.T) {
	t.Helper()
	bounded.Receive(t, "the end of "+p.name, p.exited)
	if !p.cmd.ProcessState.Success() {
		t.Fatalf("%s ended with %v", p.name, p.cmd.ProcessState)
	}
}

// stopFor stops the process for d, or until ctx ends, and lets it go on.
func (p *process) stopFor(ctx context.Context, d time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	passes(ctx, d)
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue %s: %w", p.name, err)
	}
	return nil
}

// passes waits for d, and tells whether ctx lasted that long.
func passes(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
