package measure_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

func TestMedianIsTheMiddle(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 100, 2}, 3},
	} {
		unsorted := slices.Clone(c.values)
		if got := measure.Median(c.values); got != c.want {
			t.Errorf("median of %v: got %v, want %v", c.values, got, c.want)
		}
		if !slices.Equal(c.values, unsorted) {
			t.Errorf("Median sorted its caller's values: %v", c.values)
		}
	}
	if got := measure.Median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing: got %v, want NaN", got)
	}
}

func TestQuantileIsAValueThatWasMeasured(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	for _, c := range []struct {
		values []int
		q      float64
		want   int
	}{
		{hundred, 0.99, 99},
		{hundred, 0.5, 50},
		{hundred, 1, 100},
		{hundred, 0, 1},
		{[]int{7}, 0.99, 7},
		{nil, 0.99, 0},
	} {
		if got := measure.Quantile(c.values, c.q); got != c.want {
			t.Errorf("quantile %v of %d values: got %d, want %d", c.q, len(c.values), got, c.want)
		}
	}
}

// TestPairedComparesWithinARound: a machine that was ten times slower in one
// round changes no ratio.
func TestPairedComparesWithinARound(t *testing.T) {
	sample := func(ops int) measure.Sample { return measure.Sample{Ops: ops, Elapsed: time.Second} }
	ours := []measure.Sample{sample(200), sample(20), sample(400), sample(200)}
	theirs := []measure.Sample{sample(100), sample(10), sample(200)}
	got := measure.Paired(ours, theirs, measure.Throughput)
	if want := []float64{2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := measure.Paired(ours, []measure.Sample{{}}, measure.Throughput); len(got) != 0 {
		t.Errorf("over nothing: got %v, want no ratio", got)
	}
}

func TestABoundIsMetOrMissed(t *testing.T) {
	for _, c := range []struct {
		ratio measure.Ratio
		want  string
	}{
		{measure.Ratio{Name: "put-1-bolt", Value: 0.95, Bound: measure.Bound{Relation: ">=", Limit: 0.95}}, "bound put-1-bolt >= 0.95 met"},
		{measure.Ratio{Name: "put-1-bolt", Value: 0.94, Bound: measure.Bound{Relation: ">=", Limit: 0.95}}, "bound put-1-bolt >= 0.95 missed"},
		{measure.Ratio{Name: "open-bolt", Value: 2, Bound: measure.Bound{Relation: "<=", Limit: 2}}, "bound open-bolt <= 2 met"},
		{measure.Ratio{Name: "open-bolt", Value: 2.1, Bound: measure.Bound{Relation: "<=", Limit: 2}}, "bound open-bolt <= 2 missed"},
		{measure.Ratio{Name: "p99-8-batch", Value: 1, Bound: measure.Bound{Relation: "<", Limit: 1}}, "bound p99-8-batch < 1 missed"},
		{measure.Ratio{Name: "p99-8-batch", Value: measure.Median(nil), Bound: measure.Bound{Relation: "<", Limit: 1}}, "bound p99-8-batch < 1 missed"},
	} {
		if got := c.ratio.Verdict(); got != c.want {
			t.Errorf("%v: got %q, want %q", c.ratio.Value, got, c.want)
		}
	}
}

func TestFairnessIsTheFewestOverTheMost(t *testing.T) {
	s := measure.Sample{Fewest: 3, Most: 4}
	if got := s.Add(measure.Sample{Fewest: 0, Most: 2}).Fairness(); got != 0.5 {
		t.Errorf("3 of 6: got %v, want 0.5", got)
	}
	if got := (measure.Sample{}).Fairness(); got != 0 {
		t.Errorf("of nothing: got %v, want 0", got)
	}
}

func TestBudgetNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]time.Duration{"8m": 8 * time.Minute, "40s": 40 * time.Second, "10s": 10 * time.Second} {
		got, err := measure.Budget(text)
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "8", "eight", "-1m", "9s", "0"} {
		if d, err := measure.Budget(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, d)
		}
	}
}

func TestBudgetIsSharedOutAmongAtLeastSevenRounds(t *testing.T) {
	for _, budget := range []time.Duration{-time.Second, time.Second, 40 * time.Second, 8 * time.Minute, 5 * time.Hour} {
		const turns, overhead = 45, 2 * time.Second
		n := measure.Count(budget, turns)
		if n < measure.MinRounds {
			t.Errorf("%v: got %d rounds, want %d or more", budget, n, measure.MinRounds)
		}
		turn := measure.Turn(budget, overhead, n, turns)
		if turn <= 0 {
			t.Errorf("%v: got turns of %v", budget, turn)
		}
		if planned := time.Duration(n) * (turn*turns + overhead); budget >= time.Minute && planned > budget {
			t.Errorf("%v: got %d rounds of turns of %v, which take %v", budget, n, turn, planned)
		}
	}
}

func TestRunCountsEveryOperationOfEveryWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := func(d time.Duration) measure.Op {
			return func(context.Context, int, *rand.Rand) error {
				<-time.After(d)
				return nil
			}
		}
		samples, err := measure.Run(t.Context(), time.Second, 1,
			measure.Group{Workers: 3, Op: sleep(100 * time.Millisecond)},
			measure.Group{Workers: 1, Op: sleep(700 * time.Millisecond)},
		)
		if err != nil {
			t.Fatal(err)
		}
		// The last operation is finished and counted with its time.
		for i, want := range []measure.Sample{
			{Ops: 30, Elapsed: time.Second, P50: 100 * time.Millisecond, P99: 100 * time.Millisecond, Fewest: 10, Most: 10},
			{Ops: 2, Elapsed: 1400 * time.Millisecond, P50: 700 * time.Millisecond, P99: 700 * time.Millisecond, Fewest: 2, Most: 2},
		} {
			// At the end of the second a worker may see the time or its own turn first.
			got := samples[i]
			if i == 0 && got.Ops > want.Ops && got.Ops <= want.Ops+3 {
				got.Ops, got.Elapsed, got.Most = want.Ops, want.Elapsed, want.Most
				got.Fewest = min(got.Fewest, want.Fewest)
			}
			if got != want {
				t.Errorf("group %d: got %+v, want %+v", i, got, want)
			}
		}
	})
}

func TestRunReturnsTheErrorOfAnOperation(t *testing.T) {
	broken := errors.New("broken")
	fail := func(context.Context, int, *rand.Rand) error { return broken }
	wait := func(ctx context.Context, _ int, _ *rand.Rand) error {
		<-ctx.Done()
		return ctx.Err()
	}
	_, err := measure.Run(t.Context(), time.Hour, 1, measure.Group{Workers: 1, Op: wait}, measure.Group{Workers: 2, Op: fail})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := measure.Run(ctx, time.Hour, 1, measure.Group{Workers: 1, Op: wait}); !errors.Is(err, broken) {
		t.Errorf("cancelled: got %v, want %v", err, broken)
	}
}

// TestRoundsMeasureEverybodyInEachRound: nobody is left out, nobody is always
// first, and the short round before the others does not count.
func TestRoundsMeasureEverybodyInEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, afters atomic.Int64
		firsts := map[string]int{}
		first := true
		entry := func(name string) measure.Entry {
			return measure.Entry{Name: name, Run: func(_ context.Context, d time.Duration, _ uint64) (measure.Sample, error) {
				calls.Add(1)
				if first {
					firsts[name]++
					first = false
				}
				<-time.After(d)
				return measure.Of([]time.Duration{d}), nil
			}}
		}
		cases := []measure.Case{
			{
				Name: "sliced", Slices: 4, Entries: []measure.Entry{entry("a"), entry("b")},
				Before: func() error { first = true; return nil },
				After:  func() error { afters.Add(1); return nil },
			},
			{Name: "whole", Entries: []measure.Entry{entry("a"), entry("b"), entry("c")}},
		}
		begun := time.Now()
		const budget, seed = 10 * time.Second, 5
		results, n, err := measure.Rounds(t.Context(), cases, budget, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n < measure.MinRounds {
			t.Errorf("got %d rounds, want %d or more", n, measure.MinRounds)
		}
		if took := time.Since(begun); took < budget*9/10 || took > budget*11/10 {
			t.Errorf("took %v, want about %v", took, budget)
		}
		for _, c := range cases {
			for _, e := range c.Entries {
				got := results[c.Name][e.Name]
				if len(got) != n {
					t.Errorf("%s of %s: got %d samples, want %d", e.Name, c.Name, len(got), n)
				}
				for _, s := range got {
					if s.Ops != max(c.Slices, 1) {
						t.Errorf("%s of %s: got %d turns in a round, want %d", e.Name, c.Name, s.Ops, max(c.Slices, 1))
					}
				}
			}
		}
		if got, want := int(calls.Load()), (n+1)*(4*2+3); got != want {
			t.Errorf("got %d turns, want %d", got, want)
		}
		if got := int(afters.Load()); got != n+1 {
			t.Errorf("got %d ends of a case, want %d", got, n+1)
		}
		if firsts["a"] == 0 || firsts["b"] == 0 {
			t.Errorf("with seed %d one contestant was always first: %v", seed, firsts)
		}
	})
}
