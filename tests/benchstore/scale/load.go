package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/fencedkv/fencedkv/tests/benchstore/contestant"
	"github.com/fencedkv/fencedkv/tests/benchstore/rivals"
)

const (
	fullResources = 1_000_000
	keysEach      = 10
	atOnce        = 1_000 // resources of one transaction
)

func key(resource, k int) contestant.Key {
	return contestant.NewKey(fmt.Sprintf("accounts/%07d", resource), fmt.Sprintf("key-%02d", k))
}

func anyKey(resources int, rng *rand.Rand) contestant.Key {
	return key(rng.IntN(resources), rng.IntN(keysEach))
}

// load adds the resources from first up to end.
func load(ctx context.Context, s contestant.Store, first, end int, rng *rand.Rand) error {
	pairs := make([]contestant.Pair, 0, atOnce*keysEach)
	for r := range resources(first, end) {
		pairs = pairs[:0]
		for i := r; i < min(r+atOnce, end); i++ {
			for k := range keysEach {
				pairs = append(pairs, contestant.Pair{Key: key(i, k), Value: rivals.Value(rng)})
			}
		}
		if err := s.Load(ctx, slices.Clip(pairs)); err != nil {
			return err
		}
	}
	return nil
}

// resources returns the first of each transaction.
func resources(first, end int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for r := first; r < end; r += atOnce {
			if !yield(r) {
				return
			}
		}
	}
}
