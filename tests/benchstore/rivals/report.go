package rivals

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// report writes the table, the bounds and, last, the ratios.
func report(out io.Writer, results measure.Results, synced time.Duration, refusalAllocs float64) {
	table(out, results)
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

	ratios := Ratios(results)
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range ratios {
		fmt.Fprintf(w, "%s\t%.3f\t(%.3f to %.3f)\n", r.Name, r.Value, r.Lowest, r.Most)
	}
	w.Flush()
	fmt.Fprintln(out)
	for _, r := range ratios {
		if r.Bound != (Bound{}) {
			fmt.Fprintln(out, r.Verdict())
		}
	}
	for _, r := range ratios {
		fmt.Fprintln(out, r)
	}
}

func table(out io.Writer, results measure.Results) {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\tcontestant\t1/s\tp50\tp99\t")
	for _, name := range slices.Sorted(maps.Keys(results)) {
		for _, who := range slices.Sorted(maps.Keys(results[name])) {
			s := results[name][who]
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%v\t%v\t\n", name, who, measure.MedianOf(s, measure.Throughput),
				rounded(measure.MedianOf(s, measure.P50)), rounded(measure.MedianOf(s, measure.P99)))
		}
	}
	w.Flush()
}

func rounded(seconds float64) time.Duration {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Microsecond {
		return d
	}
	return d.Round(time.Microsecond)
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
