package device_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
)

// roleEnv, if it is set, says what the process is for.
const (
	roleEnv    = "FENCEDKV_DEVICE_ROLE"
	roleTests  = "tests"  // in a mount namespace of its own
	roleServer = "server" // of the file system
	roleChild  = "child"  // a test's own process, in its namespace
)

// noMounts is why nothing can be mounted.
var noMounts error

// TestMain runs the tests in a mount namespace of their own: it takes all mounts
// along when its last process ends, however that ends.
func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case roleServer:
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case "":
		status, err := runInNamespace()
		if err == nil {
			os.Exit(status)
		}
		noMounts = err
	case roleTests:
		noMounts = mountScratch()
		os.Setenv(roleEnv, roleChild)
		debug.SetGCPercent(400) // values are large and short-lived
	}
	os.Exit(m.Run())
}

func runInNamespace() (status int, err error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("a mount namespace needs root")
	}
	runtime.LockOSThread() // Pdeathsig is about the thread
	scratch, err := os.MkdirTemp("", "device-test-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(scratch) // empty but in the namespace
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleEnv+"="+roleTests, "TMPDIR="+scratch)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("a mount namespace: %w", err)
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// mountScratch makes temporary directories cost no device anything.
func mountScratch() error {
	dir := os.TempDir()
	if err := syscall.Mount("device-test", dir, "tmpfs", 0, "size=512m"); err != nil {
		return fmt.Errorf("mount a tmpfs at %s: %w", dir, err)
	}
	return nil
}

func requireMounts(t *testing.T) {
	t.Helper()
	if noMounts != nil {
		t.Skip(noMounts)
	}
}

// requireFUSE skips where there is no FUSE, or no right to mount it.
func requireFUSE(t *testing.T) {
	t.Helper()
	requireMounts(t)
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	f.Close()
}
