package measure

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Op is one operation of one worker. Its context ends when the time is up; an
// Op that then returns the context's error is not counted.
type Op func(ctx context.Context, worker int, rng *rand.Rand) error

// Group is workers that repeat one operation, each as soon as its last has
// ended.
type Group struct {
	Workers int
	Op      Op

	// Every is how many operations are timed together, so that looking at the
	// clock costs a fast one nothing. 0 means 1.
	Every int
}

// Run runs all groups at the same time for d and returns a sample for each. The
// first error of an operation ends the run and is returned.
func Run(ctx context.Context, d time.Duration, seed uint64, groups ...Group) ([]Sample, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var (
		start   = make(chan struct{})
		failed  = make(chan error, 1)
		workers sync.WaitGroup
		records = make([][]*record, len(groups))
	)
	for g, group := range groups {
		for w := range group.Workers {
			r := &record{every: max(group.Every, 1)}
			records[g] = append(records[g], r)
			rng := rand.New(rand.NewPCG(seed, uint64(g)<<32|uint64(w)))
			workers.Go(func() {
				<-start
				if err := r.work(running, w, rng, group.Op); err != nil {
					select {
					case failed <- err:
					default: // another was first
					}
					stop()
				}
			})
		}
	}
	begun := time.Now()
	close(start)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-running.Done():
	}
	stop()
	workers.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	samples := make([]Sample, len(groups))
	for g := range groups {
		samples[g] = collect(begun, records[g])
	}
	return samples, nil
}

// record is what one worker did.
type record struct {
	every int
	ops   int
	took  []time.Duration // of every operations each
	ended time.Time
}

func (r *record) work(ctx context.Context, worker int, rng *rand.Rand, op Op) error {
	last := time.Now()
	for ctx.Err() == nil {
		for range r.every {
			if err := op(ctx, worker, rng); err != nil {
				r.ended = time.Now()
				if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
					return nil
				}
				return err
			}
			r.ops++
		}
		now := time.Now()
		r.took = append(r.took, now.Sub(last))
		last = now
	}
	r.ended = last
	return nil
}
