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

// hot returns the keys of one resource.
func hot() []contestant.Key {
	keys := make([]contestant.Key, hotKeys)
	for i := range keys {
		keys[i] = contestant.NewKey("accounts", fmt.Sprintf("key-%06d", i))
	}
	return keys
}

// spread returns so many keys of each of many resources.
func spread(each int) []contestant.Key {
	keys := make([]contestant.Key, 0, spreadResources*each)
	for r := range spreadResources {
		for k := range each {
			keys = append(keys, contestant.NewKey(fmt.Sprintf("accounts/%06d", r), fmt.Sprintf("key-%02d", k)))
		}
	}
	return keys
}

func load(ctx context.Context, s contestant.Store, keys []contestant.Key, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	pairs := make([]contestant.Pair, len(keys))
	for i, k := range keys {
		pairs[i] = contestant.Pair{Key: k, Value: Value(rng)}
	}
	contestant.Sort(pairs)
	return s.Load(ctx, pairs)
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

func pick(keys []contestant.Key, rng *rand.Rand) contestant.Key { return keys[rng.IntN(len(keys))] }

// puts and gets are operations on random keys. They do not end with the run, so
// that each is done as a whole whichever store it is.

func puts(ctx context.Context, s contestant.Store, keys []contestant.Key) measure.Op {
	return func(_ context.Context, _ int, rng *rand.Rand) error {
		return s.Put(ctx, pick(keys, rng), Value(rng))
	}
}

func gets(ctx context.Context, s contestant.Store, keys []contestant.Key) measure.Op {
	return func(_ context.Context, _ int, rng *rand.Rand) error {
		value, err := s.Get(ctx, pick(keys, rng))
		if err == nil && len(value) != valueSize {
			err = fmt.Errorf("a value of %d bytes, want %d", len(value), valueSize)
		}
		return err
	}
}
