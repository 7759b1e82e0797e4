package measure

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Ratio is ours over theirs, the median of all rounds.
type Ratio struct {
	Name   string
	Value  float64
	Lowest float64 // of a round
	Most   float64
	Bound  Bound // the zero Bound if there is none
}

// NewRatio makes a ratio of one quotient of each round.
func NewRatio(name string, bound Bound, quotients []float64) Ratio {
	r := Ratio{Name: name, Value: Median(quotients), Bound: bound}
	if len(quotients) > 0 {
		r.Lowest, r.Most = Range(quotients)
	}
	return r
}

// Bound is what a ratio has to keep.
type Bound struct {
	Relation string // ">=", "<=" or "<"
	Limit    float64
}

// AtLeast, AtMost and Below make bounds.
func AtLeast(limit float64) Bound { return Bound{">=", limit} }
func AtMost(limit float64) Bound  { return Bound{"<=", limit} }
func Below(limit float64) Bound   { return Bound{"<", limit} }

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

// Report writes the ratios with their ranges, the bounds and, last, a line for
// each ratio.
func Report(out io.Writer, ratios []Ratio) {
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
