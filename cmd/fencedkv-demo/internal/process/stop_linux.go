package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func prepare(cmd *exec.Cmd, dieWithParent bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if dieWithParent {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
}

// stop waits for the stop without taking the state away from exec.Cmd.Wait.
func stop(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("wait until it has stopped: %w", err)
			}
			return nil
		}
	}
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// CanStop tells whether a process can be stopped where it stands.
const CanStop = true
