package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// policyFile keeps Debian packages from starting their daemons: they are run
// by tests and by nobody else.
const policyFile = "/usr/sbin/policy-rc.d"

// installDebian installs packages by apt-get, as root. installed is asked
// again once the lock is held: another process may have been quicker.
func installDebian(ctx context.Context, log io.Writer, installed func() bool, packages ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("no apt-get: %w", ErrUnavailable)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("not root: %w", ErrUnavailable)
	}
	return locked(ctx, "apt.lock", func() error {
		if installed() {
			return nil
		}
		say(log, "installing %v", packages)
		remove, err := denyDaemons()
		if err != nil {
			return err
		}
		defer remove()
		env := []string{"DEBIAN_FRONTEND=noninteractive"}
		install := append([]string{
			"install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300",
		}, packages...)
		if run(ctx, log, env, "apt-get", install...) != nil {
			// The package lists may be missing or too old.
			if err := run(ctx, log, env, "apt-get", "update"); err != nil {
				return errors.Join(err, ErrUnavailable)
			}
			if err := run(ctx, log, env, "apt-get", install...); err != nil {
				return errors.Join(err, ErrUnavailable)
			}
		}
		if !installed() {
			return fmt.Errorf("apt-get installed %v, but the program is not where it should be: %w", packages, ErrUnavailable)
		}
		return nil
	})
}

// denyDaemons puts the policy file in place unless somebody else has one, and
// returns what takes it away again.
func denyDaemons() (remove func(), err error) {
	f, err := os.OpenFile(policyFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString("#!/bin/sh\nexit 101\n")
	if err := errors.Join(err, f.Close()); err != nil {
		os.Remove(policyFile)
		return nil, err
	}
	return func() { os.Remove(policyFile) }, nil
}
