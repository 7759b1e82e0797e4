package rivals

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/tests/benchstore/contestant"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// staleWriters are as many as there are good ones beside them.
const staleWriters = 64

func refusals(ctx context.Context, s *contestant.Ours, choose chooser) measure.Op {
	value := make([]byte, valueSize)
	return func(_ context.Context, _ int, rng *rand.Rand) error {
		err := s.PutStale(ctx, choose(rng), value)
		switch {
		case err == nil:
			return errors.New("a stale write was admitted")
		case !errors.Is(err, fence.ErrStale):
			return fmt.Errorf("a stale write: %w", err)
		}
		return nil
	}
}

// refusing compares a refusal with a read of bbolt.
func (f *field) refusing(ctx context.Context) measure.Case {
	return measure.Case{Name: "refusal", Slices: readSlices, Entries: []measure.Entry{
		{Name: "ours", Run: group(measure.Group{Workers: 1, Every: readsAtOnce, Op: refusals(ctx, f.ours(), f.hot)})},
		{Name: "bolt", Run: group(measure.Group{Workers: 1, Every: readsAtOnce, Op: gets(ctx, f.stores["bolt"], f.hot)})},
	}}
}

// besideStale has good writers write alone, beside as many stale ones that try
// as often, and beside as many that try without a pause.
func (f *field) besideStale(ctx context.Context) measure.Case {
	good := puts(ctx, f.ours(), f.hot)
	stale := refusals(ctx, f.ours(), f.hot)
	goodOp, staleOp := paced(good, stale, staleWriters)
	return measure.Case{Name: "stale", Entries: []measure.Entry{
		{Name: "alone", Run: group(measure.Group{Workers: staleWriters, Op: good})},
		{Name: "beside", Run: group(
			measure.Group{Workers: staleWriters, Op: goodOp},
			measure.Group{Workers: staleWriters, Op: staleOp},
		)},
		{Name: "spinning", Run: group(
			measure.Group{Workers: staleWriters, Op: good},
			measure.Group{Workers: staleWriters, Op: stale},
		)},
	}}
}

// paced lets the follower of a worker run once for each operation of the leader
// of that number.
func paced(leader, follower measure.Op, workers int) (leads, follows measure.Op) {
	done := make([]chan struct{}, workers)
	for i := range done {
		done[i] = make(chan struct{}, 1)
	}
	leads = func(ctx context.Context, worker int, rng *rand.Rand) error {
		err := leader(ctx, worker, rng)
		select {
		case done[worker] <- struct{}{}:
		default: // it is behind
		}
		return err
	}
	follows = func(ctx context.Context, worker int, rng *rand.Rand) error {
		select {
		case <-done[worker]:
			return follower(ctx, worker, rng)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return leads, follows
}

// allocations returns how many a call of op makes.
func allocations(op measure.Op) (float64, error) {
	const calls = 10_000
	rng := rand.New(rand.NewPCG(0, 0))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range calls {
		if err := op(context.Background(), 0, rng); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / calls, nil
}
