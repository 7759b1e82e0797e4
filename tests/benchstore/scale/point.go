package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/tests/benchstore/contestant"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
	"github.com/fencedkv/fencedkv/tests/benchstore/rivals"
)

// Point is what was measured at one size.
type Point struct {
	Resources int
	File      int64 // bytes
	Load      time.Duration

	Open     time.Duration // median
	BoltOpen time.Duration // raw bbolt on the same file, median

	Heap     int64 // bytes in use after a collection, over before it was opened
	BoltHeap int64 // the same of raw bbolt, which holds the list of free pages

	PutP50, PutP99 time.Duration
}

// OwnHeap is what the store holds beyond bbolt. It may be a little below 0.
func (p Point) OwnHeap() int64 { return p.Heap - p.BoltHeap }

// String is the point's line.
func (p Point) String() string {
	return fmt.Sprintf("scale resources=%d keys=%d file=%dMB load=%v open=%v bolt-open=%v heap=%dkB bolt-heap=%dkB put-p50=%v put-p99=%v",
		p.Resources, p.Resources*keysEach, p.File>>20, p.Load.Round(time.Millisecond),
		p.Open.Round(time.Microsecond), p.BoltOpen.Round(time.Microsecond), p.Heap>>10, p.BoltHeap>>10,
		p.PutP50.Round(time.Microsecond), p.PutP99.Round(time.Microsecond))
}

const (
	opens   = 7
	putting = 2 * time.Second
	touched = 20_000 // keys that are read before the heap is measured
)

// measureAt adds resources and measures. The store is closed between the steps,
// so that none sees what another has left in memory.
func measureAt(ctx context.Context, dir string, from, to int, rng *rand.Rand) (Point, error) {
	p := Point{Resources: to}
	begun := time.Now()
	err := with(dir, func(s *contestant.Ours) error { return load(ctx, s, from, to, rng) })
	if err != nil {
		return p, fmt.Errorf("load: %w", err)
	}
	p.Load = time.Since(begun)
	for _, step := range []struct {
		name string
		run  func(context.Context, string, *rand.Rand) error
	}{
		{"write", p.put},
		{"heap", p.heap},
		{"open", p.open},
	} {
		if err := step.run(ctx, dir, rng); err != nil {
			return p, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	info, err := os.Stat(contestant.OursPath(dir))
	if err != nil {
		return p, err
	}
	p.File = info.Size()
	return p, nil
}

func with(dir string, fn func(*contestant.Ours) error) error {
	s, err := contestant.OpenOurs(dir)
	if err != nil {
		return err
	}
	return errors.Join(fn(s.(*contestant.Ours)), s.Close())
}

func (p *Point) put(ctx context.Context, dir string, rng *rand.Rand) error {
	return with(dir, func(s *contestant.Ours) error {
		samples, err := measure.Run(ctx, putting, rng.Uint64(), measure.Group{
			Workers: 1,
			Op: func(_ context.Context, _ int, rng *rand.Rand) error {
				return s.Put(ctx, anyKey(p.Resources, rng), rivals.Value(rng))
			},
		})
		if err != nil {
			return err
		}
		p.PutP50, p.PutP99 = samples[0].P50, samples[0].P99
		return nil
	})
}

// heap reads and refuses all over the file first, so that caches are as full as
// they get.
func (p *Point) heap(ctx context.Context, dir string, rng *rand.Rand) error {
	before := heapInUse()
	err := with(dir, func(s *contestant.Ours) error {
		for range touched {
			k := anyKey(p.Resources, rng)
			if _, err := s.Get(ctx, k); err != nil {
				return err
			}
			if err := s.PutStale(ctx, k, nil); err == nil {
				return fmt.Errorf("a stale write of %q was admitted", k.Whole)
			}
		}
		p.Heap = heapInUse() - before
		return nil
	})
	if err != nil {
		return err
	}
	before = heapInUse()
	db, err := openBolt(dir)
	if err != nil {
		return err
	}
	p.BoltHeap = heapInUse() - before
	return db.Close()
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools still held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (p *Point) open(_ context.Context, dir string, _ *rand.Rand) error {
	var ours, bare []time.Duration
	for range opens {
		begun := time.Now()
		s, err := contestant.OpenOurs(dir)
		if err != nil {
			return err
		}
		ours = append(ours, time.Since(begun))
		if err := s.Close(); err != nil {
			return err
		}
		begun = time.Now()
		db, err := openBolt(dir)
		if err != nil {
			return err
		}
		bare = append(bare, time.Since(begun))
		if err := db.Close(); err != nil {
			return err
		}
	}
	slices.Sort(ours)
	slices.Sort(bare)
	p.Open, p.BoltOpen = measure.Quantile(ours, 0.5), measure.Quantile(bare, 0.5)
	return nil
}

func openBolt(dir string) (*bolt.DB, error) {
	return bolt.Open(contestant.OursPath(dir), 0o600, contestant.BoltOptions())
}
