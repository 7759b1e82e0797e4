package linear_test

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/tests/internal/history"
)

// childPath, if it is set, makes the test binary a process that runs one phase on
// the store of that path and tells its events on standard output.
const (
	childPath  = "FENCEDKV_LINEAR_PATH"
	childSeed  = "FENCEDKV_LINEAR_SEED"
	childPhase = "FENCEDKV_LINEAR_PHASE"
)

func TestMain(m *testing.M) {
	path := os.Getenv(childPath)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := child(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(path string) error {
	w := &workload{}
	var err error
	if w.seed, err = strconv.ParseUint(os.Getenv(childSeed), 10, 64); err != nil {
		return err
	}
	if w.phase, err = strconv.Atoi(os.Getenv(childPhase)); err != nil {
		return err
	}
	s, err := fencedkv.Open(path, nil)
	if err != nil {
		return err
	}
	for r := range history.Resources {
		m, err := s.Resource(history.NameOf("resource", r)).Highest(context.Background())
		if err != nil {
			return err
		}
		w.next[r].Store(m.Seq)
	}
	var mu sync.Mutex
	out := gob.NewEncoder(os.Stdout)
	w.run(context.Background(), history.Store{Store: s}, func(e history.Event) {
		mu.Lock()
		defer mu.Unlock()
		if err := out.Encode(e); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	})
	return s.Close()
}

// killed records two phases in processes of their own and kills each in its
// midst.
func killed(t *testing.T, w *workload, path string) history.Events {
	var m memory
	rnd := rand.New(rand.NewPCG(w.seed, 0))
	for w.phase = range 2 {
		// The prologue ends after some 36 events, the whole phase after 228.
		phaseInChild(t, w, path, &m, 50+rnd.IntN(120))
	}
	for r := range history.Resources {
		for _, e := range m.events {
			if e.Begin && e.Op.Touches(r) {
				w.next[r].Store(max(w.next[r].Load(), e.Op.Token.Seq, e.Op.OtherToken.Seq))
			}
		}
	}
	w.phase = 2
	epilogue(t, w, path, &m)
	return m.events
}

// phaseInChild kills the process after so many events. What it wrote to the pipe
// until then has happened.
func phaseInChild(t *testing.T, w *workload, path string, m *memory, after int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+path,
		childSeed+"="+strconv.FormatUint(w.seed, 10), childPhase+"="+strconv.Itoa(w.phase))
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	events := gob.NewDecoder(out)
	for n := 0; ; n++ {
		var e history.Event
		if err := events.Decode(&e); err != nil {
			if n < after {
				t.Errorf("the process ended after %d events: %v", n, err)
			}
			break
		}
		m.record(e)
		if n == after {
			_ = cmd.Process.Kill()
		}
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
