package measure

import (
	"math"
	"slices"
)

// Value is what is compared of a sample.
type Value func(Sample) float64

// Throughput is operations in a second.
func Throughput(s Sample) float64 { return s.PerSecond() }

// P50 is the median latency in seconds.
func P50(s Sample) float64 { return s.P50.Seconds() }

// P99 is the latency in seconds that one operation of a hundred passes.
func P99(s Sample) float64 { return s.P99.Seconds() }

// Fairness is the fewest operations of a worker over the most.
func Fairness(s Sample) float64 { return s.Fairness() }

// PerOp is the mean seconds that one operation takes.
func PerOp(s Sample) float64 {
	if s.Ops == 0 {
		return math.NaN()
	}
	return s.Elapsed.Seconds() / float64(s.Ops)
}

// Paired returns ours over theirs of each round. A round that one of them did
// not measure is left out.
func Paired(ours, theirs []Sample, value Value) []float64 {
	var quotients []float64
	for i := range min(len(ours), len(theirs)) {
		q := value(ours[i]) / value(theirs[i])
		if !math.IsNaN(q) && !math.IsInf(q, 0) {
			quotients = append(quotients, q)
		}
	}
	return quotients
}

// MedianOf returns the median of a value over rounds.
func MedianOf(samples []Sample, value Value) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = value(s)
	}
	return Median(values)
}

// Range returns the least and the most of values, which are not none.
func Range(values []float64) (least, most float64) { return slices.Min(values), slices.Max(values) }
