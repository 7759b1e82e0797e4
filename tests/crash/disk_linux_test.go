package crash_test

import (
	"math/rand/v2"

	"github.com/fencedkv/fencedkv/tests/internal/faultfs"
)

// crash is what may be there after a power failure. Of the changes that are not
// durable it takes, by a choice at random, none, all, each with even odds, one
// alone, all but one, or each sector with even odds.
func crash(d *faultfs.Disk, rnd *rand.Rand) faultfs.Image {
	i := d.Durable.Clone()
	way, one := rnd.IntN(6), rnd.IntN(max(1, len(d.Pending)))
	for n, c := range d.Pending {
		whole := rnd.IntN(2) == 0
		keep := func() bool { return whole }
		switch way {
		case 0:
			whole = false
		case 1:
			whole = true
		case 2:
			whole = n == one
		case 3:
			whole = n != one
		case 4:
			keep = func() bool { return rnd.IntN(2) == 0 }
		}
		if c.Kind == faultfs.Wrote || whole {
			i.Apply(c, keep)
		}
	}
	return i
}
