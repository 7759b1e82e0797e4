package measure

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// Table writes what each contestant did in each case, medians of all rounds.
func Table(out io.Writer, results Results) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\tcontestant\t1/s\tp50\tp99\t")
	for _, name := range slices.Sorted(maps.Keys(results)) {
		for _, who := range slices.Sorted(maps.Keys(results[name])) {
			s := results[name][who]
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%v\t%v\t\n", name, who, MedianOf(s, Throughput),
				rounded(MedianOf(s, P50)), rounded(MedianOf(s, P99)))
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
