package servers

import (
	"os/exec"
	"runtime"
)

// process is one run of a server's program.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and waited for
}

// startProcess starts cmd and waits for it in the background.
//
// The parent death signal of Linux follows the thread that started the child,
// not the process. So one goroutine stays locked to one thread from before the
// start until the child is gone.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
	dieWithParent(cmd)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // the state is in cmd.ProcessState
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// running tells whether the process is still there, paused or not.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process at once and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has already ended
	<-p.exited
}
