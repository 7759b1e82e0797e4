//go:build unix

package boltfile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// grow adds some 16 MiB in commits of 1 MiB.
func grow(f *boltfile.File) error {
	for i := range 16 {
		if err := put(f, fmt.Sprint("large-", i), string(bytes.Repeat([]byte{byte(i)}, 1<<20))); err != nil {
			return err
		}
	}
	return nil
}

func TestGrowthDoesNotWaitForReaders(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Log("32-bit: no address space is reserved, growth waits by design")
		return
	}
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("one")})
	err := f.View(func(tx *bolt.Tx) error {
		if err := grow(f); err != nil { // a wait for this reader would never end
			return err
		}
		if got := string(tx.Bucket(bucket).Get([]byte("id"))); got != "one" {
			return fmt.Errorf("the snapshot says %q", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, f, "large-15", string(bytes.Repeat([]byte{15}, 1<<20)))
}

func TestSmallStoreIsASmallFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	f := open(t, path, boltfile.Options{Init: filled("one")})
	for i := range 50 {
		mustPut(t, f, fmt.Sprint("k", i), string(bytes.Repeat([]byte("v"), 4<<10)))
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Size(); got > 2<<20 {
		t.Errorf("fifty values of 4 KiB make a file of %d bytes, want at most 2 MiB", got)
	}
}

func TestFileWithoutPermissionIsNamed(t *testing.T) {
	dir, err := os.MkdirTemp("", "boltfile") //nolint:usetesting // others may not enter TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.db")
	existing := filepath.Join(dir, "t.db")
	for _, p := range []string{path, existing} {
		if p == existing {
			os.Chmod(dir, 0o755)
			closeFile(t, open(t, p, boltfile.Options{}))
			os.Chmod(p, 0o400)
			os.Chmod(dir, 0o555)
		}
		err := openWithoutPrivilege(t, p)
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte("open "+p)) ||
			!bytes.Contains([]byte(err.Error()), []byte("permission denied")) {
			t.Errorf("got %v, want permission denied with the path %s", err, p)
		}
	}
}

// openWithoutPrivilege opens path in a process that is not root.
func openWithoutPrivilege(t *testing.T, path string) error {
	t.Helper()
	if os.Getuid() != 0 {
		_, err := boltfile.Open(path, boltfile.Options{})
		return err
	}
	// The test binary may lie where only root can reach it.
	bin := filepath.Join(filepath.Dir(filepath.Dir(path)), fmt.Sprintf("boltfile-test-%d", os.Getpid()))
	writeFile(t, bin, readFile(t, os.Args[0]))
	t.Cleanup(func() { os.Remove(bin) })
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	p := prepare(t, bin, "open", path)
	p.cmd.Dir = "/"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p.end()
}
