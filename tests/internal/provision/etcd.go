package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// EtcdVersion is the etcd server that the tests run. It is the version that
// the module tests/etcdserver requires.
const EtcdVersion = "v3.7.3"

const etcdPackage = "go.etcd.io/etcd/server/v3"

// Etcd is the path of the etcd program, built once per user from the module
// tests/etcdserver.
func Etcd(ctx context.Context, log io.Writer) (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	name := "etcd-" + EtcdVersion
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	err = locked(ctx, "etcd.lock", func() error {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		return buildEtcd(ctx, log, path)
	})
	if err != nil {
		return "", fmt.Errorf("etcd %s is missing: build it (go run ./servers/install in tests/): %w", EtcdVersion, err)
	}
	return path, nil
}

// buildEtcd builds next to path and renames, so that path is never half a
// program.
func buildEtcd(ctx context.Context, log io.Writer, path string) error {
	src, err := etcdModule(ctx)
	if err != nil {
		return errors.Join(err, ErrUnavailable)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	say(log, "building etcd %s", EtcdVersion)
	built := filepath.Join(tmp, filepath.Base(path))
	env := []string{"GOWORK=off", "GOFLAGS=-buildvcs=false", "GOOS=", "GOARCH="}
	if err := run(ctx, log, env, "go", "-C", src, "build", "-trimpath", "-o", built, etcdPackage); err != nil {
		return errors.Join(err, ErrUnavailable) // no toolchain, or no way to the modules
	}
	return os.Rename(built, path)
}

// etcdModule is the directory of tests/etcdserver, found from the module that
// the working directory belongs to.
func etcdModule(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/fencedkv/fencedkv/tests").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "etcdserver"), nil
}
