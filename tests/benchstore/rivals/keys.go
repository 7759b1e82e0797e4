package rivals

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/fencedkv/fencedkv/tests/benchstore/contestant"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

const (
	hotKeys         = 10_000
	spreadResources = 100_000
	valueSize       = 100
)

// chooser returns a random key.
type chooser func(*rand.Rand) contestant.Key

// hot returns the keys of one resource.
func hot() []contestant.Key {
	keys := make([]contestant.Key, hotKeys)
	for i := range keys {
		keys[i] = contestant.NewKey("accounts", fmt.Sprintf("key-%06d", i))
	}
	return keys
}

func oneOf(keys []contestant.Key) chooser {
	return func(rng *rand.Rand) contestant.Key { return keys[rng.IntN(len(keys))] }
}

// spreadKey is the i-th key, in order, of the many resources that have so many
// keys each. A slice of all would make every collection of garbage slow.
func spreadKey(i, each int) contestant.Key {
	return contestant.NewKey(fmt.Sprintf("accounts/%06d", i/each), fmt.Sprintf("key-%02d", i%each))
}

func spread(each int) chooser {
	return func(rng *rand.Rand) contestant.Key { return spreadKey(rng.IntN(spreadResources*each), each) }
}

const loadAtOnce = 10_000

// load puts the first n keys of key, which gives them in order.
func load(ctx context.Context, s contestant.Store, n int, key func(int) contestant.Key, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	for from := 0; from < n; from += loadAtOnce {
		var pairs []contestant.Pair
		for i := from; i < min(from+loadAtOnce, n); i++ {
			pairs = append(pairs, contestant.Pair{Key: key(i), Value: Value(rng)})
		}
		if err := s.Load(ctx, pairs); err != nil {
			return err
		}
	}
	return nil
}

// Value returns a random value: no store can skip a write of it or press it into
// less.
func Value(rng *rand.Rand) []byte {
	v := make([]byte, 0, valueSize+8)
	for len(v) < valueSize {
		v = binary.LittleEndian.AppendUint64(v, rng.Uint64())
	}
	return v[:valueSize]
}

// puts and gets are operations on random keys. They do not end with the run, so
// that each is done as a whole whichever store it is.

func puts(ctx context.Context, s contestant.Store, choose chooser) measure.Op {
	return func(_ context.Context, _ int, rng *rand.Rand) error {
		return s.Put(ctx, choose(rng), Value(rng))
	}
}

func gets(ctx context.Context, s contestant.Store, choose chooser) measure.Op {
	return func(_ context.Context, _ int, rng *rand.Rand) error {
		value, err := s.Get(ctx, choose(rng))
		if err == nil && len(value) != valueSize {
			err = fmt.Errorf("a value of %d bytes, want %d", len(value), valueSize)
		}
		return err
	}
}
