//go:build !unix

package servers

import (
	"errors"
	"os"
)

func terminate(p *os.Process) error { return p.Kill() }
func pause(*os.Process) error       { return errors.ErrUnsupported }
func resume(*os.Process) error      { return errors.ErrUnsupported }
