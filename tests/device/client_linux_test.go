package device_test

import (
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// device is a mounted file system whose server is another process.
type device struct {
	dir   string // where it is mounted
	calls *rpc.Client
}

func newDevice(t *testing.T) *device {
	t.Helper()
	requireFUSE(t)
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), roleEnv+"="+roleServer, "GORACE=atexit_sleep_ms=0", "GOGC=400")
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	to, err := cmd.StdinPipe()
	must(t, err)
	from, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	d := &device{dir: filepath.Join(dir, "mount"), calls: rpc.NewClient(pipe{from, to})}
	t.Cleanup(func() {
		d.calls.Close()
		end := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		defer end.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server of the file system: %v", err)
		}
		syscall.Unmount(d.dir, syscall.MNT_DETACH) // if the server did not
	})
	if _, err := d.account(); err != nil {
		t.Fatalf("the server of the file system: %v", err)
	}
	return d
}

// call calls the server.
func (d *device) call(method string, arg, reply any) error {
	if reply == nil {
		reply = &struct{}{}
	}
	call := d.calls.Go("Device."+method, arg, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-time.After(2 * patience):
		return os.ErrDeadlineExceeded
	}
}

func (d *device) account() (a Account, err error) {
	err = d.call("Account", struct{}{}, &a)
	return a, err
}

// reset empties the file system; then f is in force.
func (d *device) reset(t *testing.T, f Fault) {
	t.Helper()
	must(t, d.call("Lift", struct{}{}, nil))
	entries, err := os.ReadDir(d.dir)
	must(t, err)
	for _, e := range entries {
		must(t, os.Remove(filepath.Join(d.dir, e.Name())))
	}
	must(t, d.call("Reset", f, nil))
}

// path is that of the store.
func (d *device) path() string { return filepath.Join(d.dir, "store.db") }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
