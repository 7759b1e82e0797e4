package rivals

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// report writes the table, the bounds and, last, the ratios.
func report(out io.Writer, results measure.Results, synced time.Duration, refusalAllocs float64) {
	fmt.Fprintln(out)
	measure.Table(out, results)
	for _, name := range TooFast(results["put-1"], synced) {
		fmt.Fprintf(out, "warning: %s writes faster than the device syncs; does it sync?\n", name)
	}
	fmt.Fprintf(out, "\nallocations of a refusal: %.1f\n", refusalAllocs)
	for _, n := range writers[1:] {
		c := fmt.Sprintf("put-%d", n)
		if _, measured := results[c]["batch1"]; measured {
			fmt.Fprintf(out, "best Batch of %s: %s\n", c, BestBatch(results[c]))
		}
	}
	if q := measure.Paired(results["stale"]["spinning"], results["stale"]["alone"], measure.Throughput); len(q) > 0 {
		fmt.Fprintf(out, "good beside spinning stale: %.3f\n", measure.Median(q))
	}

	fmt.Fprintln(out)
	measure.Report(out, Ratios(results))
}

// TooFast returns who, alone, writes in less than half the time of a sync.
func TooFast(c map[string][]measure.Sample, synced time.Duration) []string {
	var fast []string
	for _, who := range slices.Sorted(maps.Keys(c)) {
		if measure.MedianOf(c[who], measure.P50) < synced.Seconds()/2 {
			fast = append(fast, who)
		}
	}
	return fast
}
