package sequential_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// TestMain keeps rapid from writing failures into the source tree. A flag of the
// caller wins.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestStoreIsMarksAndMaps: for every sequence of calls and every set of options
//
//   - a write is admitted exactly if the rule admits its token, and then mark and
//     data are those of the model; else both are as before, and the refusal names
//     the mark;
//   - an Update that fails, or one of whose claims is refused, changes nothing;
//   - reads, scans in both directions and the list of resources are those of the
//     model, inside a transaction those of the model with its own writes;
//   - closing and opening again changes nothing.
//
// A failure prints the seed and the shortest sequence that fails.
func TestStoreIsMarksAndMaps(t *testing.T) {
	dir, stores := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		stores++
		p := &player{path: filepath.Join(dir, fmt.Sprintf("store-%d.db", stores)), model: newModel()}
		p.open(t)
		defer func() { _ = p.store.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"raise":  p.raise,
			"put":    p.put,
			"delete": p.remove,
			"update": p.update,
			"view":   p.view,
			"list":   p.list,
			"reopen": p.reopen,
		})
		p.reopen(t)
		p.list(t)
	})
}
