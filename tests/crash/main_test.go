package crash_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// roleEnv, if it is set, makes the test binary a child with that load.
const roleEnv = "FENCEDKV_CRASH_LOAD"

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	err := child(role)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, syscall.EIO) || errors.Is(err, fencedkv.ErrFailed) || errors.Is(err, fencedkv.ErrUnknownOutcome) {
		os.Exit(deviceFailed)
	}
	os.Exit(1)
}

// deviceFailed is the status of a child whose store is out of use.
const deviceFailed = 3

// child tells on standard output that it runs, then what happens.
func child(role string) error {
	var l load
	if err := json.Unmarshal([]byte(role), &l); err != nil {
		return err
	}
	tell := teller(os.Stdout)
	if _, err := fmt.Println("running"); err != nil {
		return err
	}
	if l.Notes != "" {
		f, err := os.OpenFile(l.Notes, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		tell = teller(f)
	}
	return kinds[l.Kind].child(l, tell)
}

// teller writes notes, those of one call at once.
func teller(to io.Writer) func(...note) error {
	var mu sync.Mutex
	return func(notes ...note) error {
		var b strings.Builder
		for _, n := range notes {
			b.WriteString(n.String())
		}
		mu.Lock()
		defer mu.Unlock()
		_, err := io.WriteString(to, b.String())
		return err
	}
}

// kind is a kind of store and what a child does with it.
type kind struct {
	open  opener
	child func(load, func(...note) error) error
}

var kinds = map[string]kind{}

func init() { kinds["ours"] = kind{openOurs, load.writeMany} }

// writeMany opens the store and runs the load.
func (l load) writeMany(tell func(...note) error) error {
	s, err := kinds[l.Kind].open(l.Path)
	if err != nil {
		return err
	}
	if err := l.run(s, tell); err != nil {
		return err
	}
	return s.close()
}

// command prepares a child process.
func (l load) command(t *testing.T) *exec.Cmd {
	t.Helper()
	role, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	// The race detector otherwise lets a process wait for a second at its end.
	race := strings.TrimSpace(os.Getenv("GORACE") + " atexit_sleep_ms=0")
	cmd.Env = append(os.Environ(), roleEnv+"="+string(role), "GORACE="+race)
	return cmd
}

// duration is the part of CRASH_TIME for one test.
func duration(t *testing.T, part float64) time.Duration {
	text := os.Getenv("CRASH_TIME")
	if text == "" {
		text = "15s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("CRASH_TIME is %q, want a duration such as 30m", text)
	}
	return time.Duration(part * float64(d))
}

func newSeed(t *testing.T) uint64 {
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -seed %d", n)
	return n
}
