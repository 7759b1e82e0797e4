// Package provision finds the server programs that the tests run, and
// installs what is missing: Debian packages by apt-get as root, etcd by the Go
// toolchain into the user's cache directory.
//
// All functions may be called concurrently, from several processes too: what
// installs holds a lock file.
//
// # Caveats
//
// Versions are reported, never judged: every adapter states and checks the
// least version that it needs.
package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// ErrUnavailable is in the error when a program is missing and cannot be
// installed here. The text says what to install.
var ErrUnavailable = errors.New("cannot be installed here")

// Java is what runs a Java server.
type Java struct {
	Path      string // the java program
	ClassPath string
}

// Redis is the path of redis-server. What it does to get one is told on log;
// a nil log is silent.
func Redis(ctx context.Context, log io.Writer) (string, error) {
	find := func() (string, bool) {
		path, err := exec.LookPath("redis-server")
		return path, err == nil
	}
	if path, ok := find(); ok {
		return path, nil
	}
	if err := installDebian(ctx, log, func() bool { _, ok := find(); return ok }, "redis-server"); err != nil {
		return "", fmt.Errorf("redis-server is missing: install Redis (Debian: apt-get install redis-server; macOS: brew install redis): %w", err)
	}
	path, _ := find()
	return path, nil
}

// ZooKeeper is how to run ZooKeeper: java, and the jars below $ZOOKEEPER_HOME,
// else those of the Debian package.
func ZooKeeper(ctx context.Context, log io.Writer) (Java, error) {
	if java, ok := findZooKeeper(); ok {
		return java, nil
	}
	packages := []string{"zookeeper"}
	if _, err := exec.LookPath("java"); err != nil {
		packages = append(packages, "default-jre-headless")
	}
	if err := installDebian(ctx, log, func() bool { _, ok := findZooKeeper(); return ok }, packages...); err != nil {
		return Java{}, fmt.Errorf("zookeeper is missing: install java and ZooKeeper (Debian: apt-get install %s), or set ZOOKEEPER_HOME: %w",
			strings.Join(packages, " "), err)
	}
	java, _ := findZooKeeper()
	return java, nil
}

func findZooKeeper() (Java, bool) {
	path, err := exec.LookPath("java")
	if err != nil {
		return Java{}, false
	}
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		jars, _ := filepath.Glob(filepath.Join(home, "lib", "zookeeper-*.jar"))
		classes := filepath.Join(home, "*") + string(os.PathListSeparator) + filepath.Join(home, "lib", "*")
		return Java{Path: path, ClassPath: classes}, len(jars) > 0
	}
	// The jar's manifest names the jars that it needs, but for a log and a
	// part of netty, which TLS wants.
	const dir, jar = "/usr/share/java/", "/usr/share/java/zookeeper.jar"
	if _, err := os.Stat(jar); err != nil {
		return Java{}, false
	}
	classes := strings.Join([]string{jar, dir + "slf4j-simple.jar", dir + "netty-codec.jar", dir + "netty-resolver.jar"}, ":")
	return Java{Path: path, ClassPath: classes}, true
}

// cacheDir is where built programs and lock files are kept between runs.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir() // no HOME
	}
	dir := filepath.Join(base, "fencedkv")
	return dir, os.MkdirAll(dir, 0o755)
}

// locked runs f while this process alone holds the named lock file.
func locked(ctx context.Context, name string, f func() error) error {
	dir, err := cacheDir()
	if err != nil {
		return err
	}
	lock := flock.New(filepath.Join(dir, name))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return fmt.Errorf("wait for another installation (%s): %w", lock.Path(), err)
	}
	defer func() { _ = lock.Unlock() }()
	return f()
}

func say(log io.Writer, format string, args ...any) {
	if log != nil {
		fmt.Fprintf(log, format+"\n", args...)
	}
}

// run runs a command. What it prints is only shown when it fails.
func run(ctx context.Context, log io.Writer, env []string, name string, args ...string) error {
	say(log, "  %s %s", name, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	// A killed apt-get leaves half-configured packages; an interrupted one
	// tidies up.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
