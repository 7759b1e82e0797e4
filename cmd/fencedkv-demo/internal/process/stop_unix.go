//go:build unix && !linux

package process

import (
	"os"
	"os/exec"
	"syscall"
)

func prepare(cmd *exec.Cmd, _ bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// stop returns when the signal is sent. The process stops a moment later, which
// is early enough: it waits for its parent's next line.
func stop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// CanStop tells whether a process can be stopped where it stands.
const CanStop = true
