package measure

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Sample is what one group of workers did in one run.
type Sample struct {
	Ops     int
	Elapsed time.Duration // until the last worker had ended its last operation
	P50     time.Duration // of one operation; of several that are timed together, their mean
	P99     time.Duration

	Fewest, Most int // operations of one worker
}

// PerSecond returns the operations in a second.
func (s Sample) PerSecond() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Ops) / s.Elapsed.Seconds()
}

// Fairness is the fewest operations of a worker over the most, from 0 to 1.
func (s Sample) Fairness() float64 {
	if s.Most == 0 {
		return 0
	}
	return float64(s.Fewest) / float64(s.Most)
}

// Add joins two samples of the same operation. Of the latencies it keeps the
// larger, because the rest of the distribution is gone, and of the workers those
// that are furthest apart.
func (s Sample) Add(o Sample) Sample {
	return Sample{
		Ops:     s.Ops + o.Ops,
		Elapsed: s.Elapsed + o.Elapsed,
		P50:     max(s.P50, o.P50),
		P99:     max(s.P99, o.P99),
		Fewest:  s.Fewest + o.Fewest,
		Most:    s.Most + o.Most,
	}
}

// Of returns the sample of operations that took so long, one after the other.
func Of(took []time.Duration) Sample {
	s := Sample{Ops: len(took), Fewest: len(took), Most: len(took)}
	for _, d := range took {
		s.Elapsed += d
	}
	sorted := slices.Sorted(slices.Values(took))
	s.P50, s.P99 = Quantile(sorted, 0.50), Quantile(sorted, 0.99)
	return s
}

func collect(begun time.Time, records []*record) Sample {
	var s Sample
	var took []time.Duration
	for i, r := range records {
		s.Ops += r.ops
		if i == 0 {
			s.Fewest = r.ops
		}
		s.Fewest, s.Most = min(s.Fewest, r.ops), max(s.Most, r.ops)
		s.Elapsed = max(s.Elapsed, r.ended.Sub(begun))
		for _, d := range r.took {
			took = append(took, d/time.Duration(r.every))
		}
	}
	slices.Sort(took)
	s.P50, s.P99 = Quantile(took, 0.50), Quantile(took, 0.99)
	return s
}

// Quantile returns the smallest of sorted values that is not below a share q of
// them, and the zero value of none.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var zero T
		return zero
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Median returns the middle of values, or the mean of the middle two. It is NaN
// of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
