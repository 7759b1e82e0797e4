package engine_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0 takes the clock")

// TestOverlayIsAnOrderedMap compares it with a map and a sorted list, at sizes
// at which its chunks split many times.
func TestOverlayIsAnOrderedMap(t *testing.T) {
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -seed %d", n)
	rnd := rand.New(rand.NewPCG(n, 0))

	for _, keys := range []int{3, 600, 20000} {
		var o engine.Overlay
		if _, _, found := o.Last(); found {
			t.Error("an empty overlay has a last write")
		}
		want := map[string][]byte{}
		size := 0
		for range 2 * keys {
			key := strconv.Itoa(rnd.IntN(keys))
			record := make([]byte, rnd.IntN(4))
			grown, _ := o.Set(key, record)
			size += grown
			want[key] = record
		}
		sorted := make([]string, 0, len(want))
		wantSize := 0
		for k, v := range want {
			sorted = append(sorted, k)
			wantSize += 64 + len(k) + len(v)
		}
		slices.Sort(sorted)
		if size != wantSize {
			t.Errorf("%d keys: it grew by %d bytes, want %d", keys, size, wantSize)
		}
		at := func(i int) (string, bool) {
			if i < 0 || i >= len(sorted) {
				return "", false
			}
			return sorted[i], true
		}
		for range 2000 {
			probe := strconv.Itoa(rnd.IntN(2 * keys))
			i, there := slices.BinarySearch(sorted, probe)
			if _, v, found := o.Get(probe); found != there || len(v) != len(want[probe]) {
				t.Fatalf("%d keys: Get(%q) = %q, %v, want %v", keys, probe, v, found, there)
			}
			wantKey, wantFound := at(i)
			if got, _, found := o.Ceil(probe); got != wantKey || found != wantFound {
				t.Fatalf("%d keys: Ceil(%q) = %q, %v, want %q, %v", keys, probe, got, found, wantKey, wantFound)
			}
			wantKey, wantFound = at(i - 1)
			if got, _, found := o.Below(probe); got != wantKey || found != wantFound {
				t.Fatalf("%d keys: Below(%q) = %q, %v, want %q, %v", keys, probe, got, found, wantKey, wantFound)
			}
		}
		if got, _, found := o.Last(); got != sorted[len(sorted)-1] || !found {
			t.Errorf("%d keys: Last = %q, %v, want %q", keys, got, found, sorted[len(sorted)-1])
		}
	}
}
