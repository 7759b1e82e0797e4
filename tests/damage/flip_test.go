package damage_test

import (
	"math/rand/v2"
	"os"
	"testing"
)

// full is whether the whole corpus is to be examined.
func full() bool { return os.Getenv("DAMAGE") == "full" }

// TestFlippedBits flips bits, one at a time. The properties, beside those that
// every damage must keep (see class): a flip in a page that is not in use, or in
// the slack of one that is, changes nothing; a flip in which neither a read nor
// Check sees anything does no harm when the store is written to.
func TestFlippedBits(t *testing.T) {
	for _, name := range []string{"few", "many"} {
		t.Run(name, func(t *testing.T) { flipBits(t, theCorpus(t, name)) })
	}
}

func flipBits(t *testing.T, c *corpus) {
	a, err := dissect(c.sound)
	must(t, err)
	if a.free == 0 || a.depth < 3 || a.branches < 2 || a.emptied == 0 {
		t.Fatalf("%d free pages, depth %d, %d branch pages, %d leaves that one bit makes empty: the store is too simple",
			a.free, a.depth, a.branches, a.emptied)
	}
	var all, others []int
	for at, r := range a.of {
		for bit := range 8 {
			switch n := at*8 + bit; {
			case c.always(r):
				all = append(all, n)
			default:
				others = append(others, n)
			}
		}
	}
	one := func(tab *table, k kind) func(int, verdict) {
		return func(n int, v verdict) {
			r := a.of[n/8]
			tab.add(t, r.String(), v, func() string { return c.describe(a, k, n) })
			switch {
			case (r == slack || r == freePage) && v.class != harmless:
				t.Errorf("%s: %v, want harmless: %s", c.describe(a, k, n), v.class, v.detail)
			case !c.always(r) && v.class > found:
				t.Errorf("%s: %v, want an error of a read: %s", c.describe(a, k, n), v.class, v.detail)
			}
		}
	}
	golden := newTable()
	c.examine(t, settled, all, one(golden, settled))
	golden.wantGolden(t, "flips-"+c.Name)
	if !full() {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		rnd.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		others = others[:sample]
	}
	tab := newTable()
	c.examine(t, flip, others, one(tab, flip))
	t.Logf("the others\n%v", tab)
}

// sample is how many of the other bits the normal run flips.
const sample = 2000

// always is whether the normal run takes all bits of a region.
func (c *corpus) always(r region) bool {
	switch r {
	case metaPage, freeList, pageHeader, branchElement, branchKey, bucketHeader:
		return true
	case leafElement, recordHeader:
		return c.Name == "few"
	}
	return false
}
