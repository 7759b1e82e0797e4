package linear_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/tests/internal/history"
)

var seed = flag.Uint64("seed", 0, "seed of the workloads; 0 takes the clock")

// count is how many histories are recorded: HISTORIES, or a few.
func count(t *testing.T) int {
	text := os.Getenv("HISTORIES")
	if text == "" {
		return 40
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("HISTORIES is %q, want a number of histories", text)
	}
	return n
}

func firstSeed(t *testing.T) uint64 {
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat the workload with -seed %d", n)
	return n
}

func open(t *testing.T, path string) *fencedkv.Store {
	t.Helper()
	s, err := fencedkv.Open(path, nil)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func closeStore(t *testing.T, s *fencedkv.Store) {
	t.Helper()
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestHistoriesAreLinearizable: concurrent calls take effect as if one came after
// the other, each between its beginning and its end. That holds across Close and
// Open, and across the death of the process, where what was in flight has an
// unknown outcome.
func TestHistoriesAreLinearizable(t *testing.T) {
	first := firstSeed(t)
	lowest, operations, pending := 1.0, 0, 0
	for n := range count(t) {
		w := &workload{seed: first + uint64(n)}
		kind, record := "reopened", reopened
		if n%4 == 3 {
			kind, record = "killed", killed
		}
		h := record(t, w, filepath.Join(t.TempDir(), "store.db"))
		what := kind + " store, seed " + strconv.FormatUint(w.seed, 10)
		lowest = min(lowest, requireWorth(t, what, h))
		requireLinearizable(t, what, h)
		for _, o := range h.Operations() {
			operations++
			if o.Output.(history.Result).Outcome == history.Unknown {
				pending++
			}
		}
	}
	t.Logf("%d operations, %d of unknown outcome; the least concurrent history: %.0f %%", operations, pending, 100*lowest)
}

// reopened records two phases with Close and Open between them.
func reopened(t *testing.T, w *workload, path string) history.Events {
	var m memory
	for w.phase = range 2 {
		s := open(t, path)
		w.run(t.Context(), history.Store{Store: s}, m.record)
		closeStore(t, s)
	}
	w.phase = 2
	epilogue(t, w, path, &m)
	return m.events
}

// epilogue reads everything once more, and is refused what must be.
func epilogue(t *testing.T, w *workload, path string, m *memory) {
	s := open(t, path)
	defer closeStore(t, s)
	for r := range history.Resources {
		for _, o := range w.prologue(r) {
			w.perform(t.Context(), history.Store{Store: s}, m.record, w.phase*(clients+1), o)
		}
	}
}
