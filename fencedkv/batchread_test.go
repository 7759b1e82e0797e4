package fencedkv_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// TestFunctionReadsWhatItsBatchDeleted empties leaves of the file in one request of
// a batch and reads around them in the next. What was deleted is gone, and nothing
// else, in both directions.
func TestFunctionReadsWhatItsBatchDeleted(t *testing.T) {
	const n = 600 // some twenty leaves
	key := func(i int) []byte { return fmt.Appendf(nil, "k%05d", i) }
	for name, gone := range map[string][2]int{
		"all": {0, n}, "the middle": {200, 400}, "the first ones": {0, 400}, "the last ones": {200, n},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, nil)
				r := s.Resource("r")
				data := map[string]string{}
				must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
					for i := range n {
						data[string(key(i))] = strings.Repeat("v", 100)
						must(t, tx.Put(key(i), []byte(data[string(key(i))])))
					}
					return nil
				}))
				var deleted, read *pending
				whileHeld(t, s, func() {
					deleted = queue(func() error {
						return r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
							for i := gone[0]; i < gone[1]; i++ {
								delete(data, string(key(i)))
								must(t, tx.Delete(key(i)))
							}
							return nil
						})
					})
					read = queue(func() error {
						return r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
							wantState(t, tx, data, rand.New(rand.NewPCG(1, 0)))
							return nil
						})
					})
				})
				must(t, deleted.wait())
				must(t, read.wait())
				must(t, s.Check(t.Context()))
			})
		})
	}
}

// TestRandomBatchesReadTheirOwnState lets requests of a batch delete and write
// ranges of keys, and each look first at what those before it left.
func TestRandomBatchesReadTheirOwnState(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil)
		names := []string{"a", "b", "cc"}
		states := map[string]map[string]string{"a": {}, "b": {}, "cc": {}}
		for round := range rounds {
			var requests []*pending
			whileHeld(t, s, func() {
				for range 1 + rnd.IntN(6) {
					name := names[rnd.IntN(len(names))]
					before := maps.Clone(states[name])
					writes := randomWrites(rnd, states[name])
					look := rand.New(rand.NewPCG(rnd.Uint64(), 0))
					requests = append(requests, queue(func() error {
						return s.Resource(name).Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
							wantState(t, tx, before, look)
							for k, v := range writes {
								if v == "" {
									must(t, tx.Delete([]byte(k)))
								} else {
									must(t, tx.Put([]byte(k), []byte(v)))
								}
							}
							return nil
						})
					}))
				}
			})
			for _, p := range requests {
				must(t, p.wait())
			}
			if round%10 == 9 {
				must(t, s.Check(t.Context()))
			}
		}
	})
}

// randomWrites changes state and returns how; "" is a delete.
func randomWrites(rnd *rand.Rand, state map[string]string) map[string]string {
	writes := map[string]string{}
	set := func(k, v string) {
		writes[k], state[k] = v, v
		if v == "" {
			delete(state, k)
		}
	}
	from, length := rnd.IntN(1500), []int{1, 20, 300, 1500}[rnd.IntN(4)]
	size := []int{1, 30, 200, 2000}[rnd.IntN(4)]
	keep := []int{0, 1, 9}[rnd.IntN(3)] // of ten
	for i := from; i < min(from+length, 1500); i++ {
		k := fmt.Sprintf("k%05d", i)
		if rnd.IntN(10) < keep {
			set(k, strings.Repeat(string(rune('a'+rnd.IntN(26))), size))
		} else {
			set(k, "")
		}
	}
	if rnd.IntN(8) == 0 {
		for k := range state {
			set(k, "")
		}
	}
	return writes
}

// wantState compares some ranges of tx, and some keys, with data.
func wantState(t *testing.T, tx *fencedkv.Tx, data map[string]string, rnd *rand.Rand) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(data))
	some := func() []byte { return fmt.Appendf(nil, "k%05d", rnd.IntN(1500)) }
	for _, reverse := range []bool{false, true} {
		for _, r := range []fencedkv.Range{{}, {Start: some()}, {End: some()}, {Start: some(), End: some()}} {
			r.Reverse = reverse
			var want []string
			for _, k := range keys {
				if k >= string(r.Start) && (len(r.End) == 0 || k < string(r.End)) {
					want = append(want, k+"="+data[k])
				}
			}
			if reverse {
				slices.Reverse(want)
			}
			if got := keysOf(t, tx.Scan(r)); !slices.Equal(got, want) {
				t.Fatalf("Scan from %q to %q, reverse %v: got %d records, want %d", r.Start, r.End, reverse, len(got), len(want))
			}
		}
	}
	for range 30 {
		k := some()
		v, err := tx.Get(k)
		if want, there := data[string(k)]; there && string(v) != want || !there && !errors.Is(err, fencedkv.ErrNotFound) {
			t.Fatalf("Get(%q): got %d bytes, %v, want %d bytes", k, len(v), err, len(want))
		}
	}
}

func TestFirstRaisesOfAStoreMayShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil)
		given := errors.New("given up")
		var first, second *pending
		err := s.Resource("held").Update(t.Context(), token(1, ""), func(context.Context, *fencedkv.Tx) error {
			first = queue(func() error { return s.Resource("a").Raise(t.Context(), token(1, "")) })
			second = queue(func() error { return s.Resource("b").Raise(t.Context(), token(1, "")) })
			return given
		})
		wantIs(t, err, given)
		must(t, first.wait())
		must(t, second.wait())
	})
}
