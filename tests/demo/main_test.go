// Package demo_test runs the demonstration as its users do: as a program.
package demo_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// program is the demonstration, built once.
var program string

func TestMain(m *testing.M) {
	// A run mostly waits for a lease to run out. A flag of the caller wins.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fencedkv-demo-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "fencedkv-demo")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	build := exec.Command("go", "build", "-C", filepath.Join("..", ".."), "-o", program, "./cmd/fencedkv-demo")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// patience is how long a run may take. It only bounds a failure.
const patience = time.Minute

// command prepares a run with a temporary directory of its own.
func command(t *testing.T, args ...string) (cmd *exec.Cmd, tmp string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	tmp = t.TempDir()
	cmd = exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "TMP="+tmp, "TEMP="+tmp, "NO_COLOR=", "COLUMNS=")
	return cmd, tmp
}

type outcome struct {
	stdout, stderr string
	status         int
}

// run runs the demonstration to its end and checks that it leaves no file.
func run(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd, tmp := command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && !isExit(err) {
		t.Fatalf("%v: %v", args, err)
	}
	if left := filesIn(t, tmp); len(left) > 0 {
		t.Errorf("%v: left in the temporary directory: %v", args, left)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func isExit(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
