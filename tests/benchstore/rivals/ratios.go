package rivals

import (
	"fmt"

	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// Ratio is ours over theirs, the median of all rounds.
type Ratio struct {
	Name   string
	Value  float64
	Lowest float64 // of a round
	Most   float64
	Bound  Bound // the zero Bound if there is none
}

// Bound is what a ratio has to keep.
type Bound struct {
	Relation string // ">=", "<=" or "<"
	Limit    float64
}

// Met says whether v keeps the bound. A NaN keeps none.
func (b Bound) Met(v float64) bool {
	switch b.Relation {
	case ">=":
		return v >= b.Limit
	case "<=":
		return v <= b.Limit
	case "<":
		return v < b.Limit
	}
	return false
}

// Verdict is the line that says whether a bounded ratio is met.
func (r Ratio) Verdict() string {
	verdict := "missed"
	if r.Bound.Met(r.Value) {
		verdict = "met"
	}
	return fmt.Sprintf("bound %s %s %g %s", r.Name, r.Bound.Relation, r.Bound.Limit, verdict)
}

// String is the ratio's line.
func (r Ratio) String() string { return fmt.Sprintf("ratio %s %.3f", r.Name, r.Value) }

// boundOf are the bounds by the name of the ratio.
var boundOf = map[string]Bound{
	"put-1-bolt":        {">=", 0.95},
	"put-8-bolt":        {">=", 4},
	"put-64-bolt":       {">=", 9},
	"put-256-bolt":      {">=", 15},
	"put-8-batch":       {">=", 2},
	"put-64-batch":      {">=", 1.2},
	"put-256-batch":     {">=", 1.2},
	"p99-8-batch":       {"<", 1},
	"p99-64-batch":      {"<", 1},
	"p99-256-batch":     {"<", 1},
	"get-1-bolt":        {">=", 0.90},
	"get-2-bolt":        {">=", 0.90},
	"refusal-view":      {"<=", 1},
	"good-beside-stale": {">=", 0.90},
	"open-bolt":         {"<=", 2},
}

// Ratios compares what was measured. Batch enters with the delay that gave it
// the higher throughput.
func Ratios(r measure.Results) []Ratio {
	var all []Ratio
	add := func(name string, value measure.Value, ours, theirs []measure.Sample) {
		if len(ours) == 0 || len(theirs) == 0 {
			return // not measured
		}
		quotients := measure.Paired(ours, theirs, value)
		ratio := Ratio{Name: name, Value: measure.Median(quotients), Bound: boundOf[name]}
		if len(quotients) > 0 {
			ratio.Lowest, ratio.Most = measure.Range(quotients)
		}
		all = append(all, ratio)
	}
	put := func(n int) map[string][]measure.Sample { return r[fmt.Sprintf("put-%d", n)] }
	for _, n := range writers {
		add(fmt.Sprintf("put-%d-bolt", n), measure.Throughput, put(n)["ours"], put(n)["bolt"])
	}
	for _, n := range writers[1:] {
		best := put(n)[BestBatch(put(n))]
		add(fmt.Sprintf("put-%d-batch", n), measure.Throughput, put(n)["ours"], best)
		add(fmt.Sprintf("p99-%d-batch", n), measure.P99, put(n)["ours"], best)
	}
	for _, rival := range []string{"pebble", "badger", "sqlite"} {
		for _, n := range []int{1, 64} {
			add(fmt.Sprintf("put-%d-%s", n, rival), measure.Throughput, put(n)["ours"], put(n)[rival])
		}
	}
	add("get-1-bolt", measure.Throughput, r["get-1"]["ours"], r["get-1"]["bolt"])
	add("get-2-bolt", measure.Throughput, r["get-2"]["ours"], r["get-2"]["bolt"])
	add("refusal-view", measure.PerOp, r["refusal"]["ours"], r["refusal"]["bolt"])
	add("good-beside-stale", measure.Throughput, r["stale"]["beside"], r["stale"]["alone"])
	add("open-bolt", measure.P50, r["open"]["ours"], r["open"]["bolt"])
	return all
}

// BestBatch returns which of batch10 and batch1 wrote more in a case.
func BestBatch(c map[string][]measure.Sample) string {
	if measure.MedianOf(c["batch10"], measure.Throughput) > measure.MedianOf(c["batch1"], measure.Throughput) {
		return "batch10"
	}
	return "batch1"
}
