package boltfile_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// roleVar tells the test binary, started again by a test, to be one of roles.
const roleVar = "BOLTFILE_TEST_ROLE"

// roles are what another process can do. It gets its arguments, talks through
// stdin and stdout, and exits with the returned error on stderr.
var roles = map[string]func(args []string) error{
	"hold":   roleHold,
	"create": roleCreate,
	"die":    roleDie,
	"open":   roleOpen,
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := roles[role](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is another process that plays a role.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr *strings.Builder
}

func start(t *testing.T, role string, args ...string) *process {
	t.Helper()
	p := prepare(t, os.Args[0], role, args...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func prepare(t *testing.T, bin, role string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), bin, args...), stderr: new(strings.Builder)}
	// The race detector would otherwise keep each process for a second.
	p.cmd.Env = append(os.Environ(), roleVar+"="+role, "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = p.stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	return p
}

// say sends the process one line.
func (p *process) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// hear waits for the next line of the process.
func (p *process) hear(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		p.cmd.Wait()
		t.Fatalf("the other process ended early: %s", p.stderr)
	}
	return p.out.Text()
}

// end lets the process finish and returns its error.
func (p *process) end() error {
	p.in.Close()
	for p.out.Scan() {
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, p.stderr)
	}
	return nil
}

// roleHold opens a store and holds it until its stdin ends.
func roleHold(args []string) error {
	f, err := boltfile.Open(args[0], boltfile.Options{})
	if err != nil {
		return err
	}
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
	return f.Close()
}

// roleOpen opens a store and closes it.
func roleOpen(args []string) error {
	f, err := boltfile.Open(args[0], boltfile.Options{Timeout: time.Nanosecond})
	if err != nil {
		return err
	}
	return f.Close()
}

var bucket = []byte("b")

// filled makes a store whose bucket holds id.
func filled(id string) func(*bolt.Tx) error {
	return func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket(bucket)
		if err != nil {
			return err
		}
		return b.Put([]byte("id"), []byte(id))
	}
}

func get(f *boltfile.File, key string) (v string, err error) {
	err = f.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		if b == nil {
			return fmt.Errorf("bucket %q is missing", bucket)
		}
		v = string(b.Get([]byte(key)))
		return nil
	})
	return v, err
}

func put(f *boltfile.File, key, value string) error {
	return f.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucket).Put([]byte(key), []byte(value)) })
}

func open(t *testing.T, path string, o boltfile.Options) *boltfile.File {
	t.Helper()
	f, err := boltfile.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() { f.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(20 * time.Second):
			t.Error("the file does not close")
		}
	})
	return f
}

func closeFile(t *testing.T, f *boltfile.File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustPut(t *testing.T, f *boltfile.File, key, value string) {
	t.Helper()
	if err := put(f, key, value); err != nil {
		t.Fatal(err)
	}
}

func wantValue(t *testing.T, f *boltfile.File, key, want string) {
	t.Helper()
	got, err := get(f, key)
	if err != nil || got != want {
		t.Fatalf("%s = %q, %v; want %q", key, got, err, want)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// roomy maps 64 MiB at once where none are reserved: a commit that must map the
// file anew waits there for every State.
func roomy(o boltfile.Options) boltfile.Options {
	if reservable {
		return o
	}
	return boltfile.WithOps(o, boltfile.Ops{Reserve: func(*os.File, int64) int { return 64 << 20 }})
}

// unshared lets the file reserve no address space, so that no State is shared.
func unshared(o boltfile.Options) boltfile.Options {
	return boltfile.WithOps(o, boltfile.Ops{Reserve: func(*os.File, int64) int { return 0 }})
}
