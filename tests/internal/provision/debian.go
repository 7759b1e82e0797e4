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

// The second line tells our file, left by a run that was killed, from one of
// the machine's owner.
const policy = "#!/bin/sh\n# Written by the tests of fencedkv while apt-get runs.\nexit 101\n"

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
		remove, err := denyDaemons(policyFile)
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

// denyDaemons puts the policy file in place unless somebody else has one there,
// and returns what takes it away again. The installation lock is held.
func denyDaemons(path string) (remove func(), err error) {
	there, err := os.ReadFile(path)
	switch {
	case err == nil && string(there) != policy:
		return func() {}, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	if err := os.WriteFile(path, []byte(policy), 0o755); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(path) }, nil
}
