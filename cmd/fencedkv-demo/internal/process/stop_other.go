//go:build !unix

package process

import (
	"errors"
	"os"
	"os/exec"
)

func prepare(*exec.Cmd, bool) {}

func stop(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }

// CanStop tells whether a process can be stopped where it stands.
const CanStop = false
