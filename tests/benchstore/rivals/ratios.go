package rivals

import (
	"fmt"

	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// boundOf are the bounds by the name of the ratio.
var boundOf = map[string]measure.Bound{
	"put-1-bolt":        measure.AtLeast(0.95),
	"put-8-bolt":        measure.AtLeast(4),
	"put-64-bolt":       measure.AtLeast(9),
	"put-256-bolt":      measure.AtLeast(15),
	"put-8-batch":       measure.AtLeast(2),
	"put-64-batch":      measure.AtLeast(1.2),
	"put-256-batch":     measure.AtLeast(1.2),
	"p99-8-batch":       measure.Below(1),
	"p99-64-batch":      measure.Below(1),
	"p99-256-batch":     measure.Below(1),
	"get-1-bolt":        measure.AtLeast(0.90),
	"get-2-bolt":        measure.AtLeast(0.90),
	"refusal-view":      measure.AtMost(1),
	"good-beside-stale": measure.AtLeast(0.90),
	"open-bolt":         measure.AtMost(2),
}

// Ratios compares what was measured. Batch enters with the delay that gave it
// the higher throughput.
func Ratios(r measure.Results) []measure.Ratio {
	var all []measure.Ratio
	add := func(name string, value measure.Value, ours, theirs []measure.Sample) {
		if len(ours) == 0 || len(theirs) == 0 {
			return // not measured
		}
		all = append(all, measure.NewRatio(name, boundOf[name], measure.Paired(ours, theirs, value)))
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
