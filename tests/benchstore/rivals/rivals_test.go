package rivals_test

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
	"github.com/fencedkv/fencedkv/tests/benchstore/rivals"
)

func rounds(ops int, p99 time.Duration) []measure.Sample {
	return slices.Repeat([]measure.Sample{{Ops: ops, Elapsed: time.Second, P50: p99, P99: p99}}, measure.MinRounds)
}

func TestBatchEntersWithItsBestDelay(t *testing.T) {
	results := measure.Results{
		"put-8":  {"ours": rounds(600, 5), "batch10": rounds(100, 10), "batch1": rounds(300, 20)},
		"put-64": {"ours": rounds(600, 5), "batch10": rounds(400, 10), "batch1": rounds(300, 20)},
	}
	got := map[string]float64{}
	for _, r := range rivals.Ratios(results) {
		got[r.Name] = r.Value
	}
	for name, want := range map[string]float64{"put-8-batch": 2, "p99-8-batch": 0.25, "put-64-batch": 1.5, "p99-64-batch": 0.5} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
}

func TestWhoWritesFasterThanTheDeviceIsNamed(t *testing.T) {
	c := map[string][]measure.Sample{
		"honest": rounds(1000, time.Millisecond),
		"lazy":   rounds(100_000, 10*time.Microsecond),
	}
	if got, want := rivals.TooFast(c, time.Millisecond), []string{"lazy"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestValuesDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	a, b := rivals.Value(rng), rivals.Value(rng)
	if len(a) != 100 || len(b) != 100 || bytes.Equal(a, b) {
		t.Errorf("got %x and %x, want two values of 100 bytes", a, b)
	}
}

// names are those of the ratios, in the order of the report.
var names = strings.Fields(`
	put-1-bolt put-8-bolt put-64-bolt put-256-bolt
	put-8-batch p99-8-batch put-64-batch p99-64-batch put-256-batch p99-256-batch
	put-1-pebble put-64-pebble put-1-badger put-64-badger put-1-sqlite put-64-sqlite
	get-1-bolt get-2-bolt refusal-view good-beside-stale open-bolt`)

// TestAShortRunEndsWithEveryRatio runs everything for as short a time as there
// is.
func TestAShortRunEndsWithEveryRatio(t *testing.T) {
	var out bytes.Buffer
	err := rivals.Run(t.Context(), rivals.Config{Dir: t.TempDir(), Budget: time.Second, Seed: 1}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) < len(names) {
		t.Fatalf("got %d lines:\n%s", len(lines), &out)
	}
	for i, line := range lines[len(lines)-len(names):] {
		want := regexp.MustCompile(`^ratio ` + names[i] + ` [0-9]+\.[0-9]{3}$`)
		if !want.MatchString(line) {
			t.Errorf("got %q, want %v", line, want)
		}
	}
	for _, want := range []string{"fdatasync median ", "bound put-1-bolt >= 0.95 m", "bound open-bolt <= 2 m"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// TestALimitedRunLeavesOutWhatItDidNotMeasure: a ratio of nothing is no line.
func TestALimitedRunLeavesOutWhatItDidNotMeasure(t *testing.T) {
	var out bytes.Buffer
	err := rivals.Run(t.Context(), rivals.Config{
		Dir: t.TempDir(), Budget: time.Second, Seed: 1, Only: regexp.MustCompile("^put-8$"), Who: []string{"ours", "bolt"},
	}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	got := regexp.MustCompile(`(?m)^ratio \S+`).FindAllString(out.String(), -1)
	if want := []string{"ratio put-8-bolt"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	err = rivals.Run(t.Context(), rivals.Config{Dir: t.TempDir(), Budget: time.Second, Only: regexp.MustCompile("^none$")}, &out)
	if err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("no such case: got %v, want an error that names it", err)
	}
}
