package damage_test

import "testing"

// TestDamagedPages zeroes each page, swaps each with each other one (in the larger
// store the normal run takes one pair of eight), and replaces
// each by what stood there after an older commit, which is what a disk leaves
// that has lost a write. An old page can be sound in itself, and its records too:
// then what was there before is read, and only the digest tells.
//
// Where a commit took the pages that those before it had freed no two stores are
// the same, so that for lost writes there are no numbers to compare with.
func TestDamagedPages(t *testing.T) {
	for _, name := range []string{"few", "many"} {
		t.Run(name, func(t *testing.T) {
			tab := newTable()
			damagePages(t, theCorpus(t, name), tab, zero, swap)
			file := "pages-" + name
			if full() {
				file += "-full"
			}
			tab.wantGolden(t, file)
		})
		t.Run(name+" lost writes", func(t *testing.T) {
			tab := newTable()
			damagePages(t, theCorpus(t, name+"-old"), tab, lose)
			t.Logf("\n%v", tab)
			if tab.count(harmless) == 0 || tab.count(openDamage) == 0 {
				t.Error("a lost write of a page that is free is harmless, and one that is in use is not")
			}
		})
	}
}

func damagePages(t *testing.T, c *corpus, tab *table, kinds ...kind) {
	a, err := dissect(c.sound)
	must(t, err)
	for _, k := range kinds {
		var list []int
		for n := range c.number(k) {
			switch {
			case c.damaged(k, n) == nil:
			case !full() && k == swap && c.Name == "many" && n%8 > 0:
			default:
				list = append(list, n)
			}
		}
		c.examine(t, k, list, func(n int, v verdict) {
			row := string(k)
			if k == lose && c.isNewestMeta(n) {
				// The meta page of the last commit: the store as it was before it
				// is whole, and nothing in the file says that there was more.
				row = "lose, whole"
				if v.class != wrong && v.class != lost && v.class != admitted {
					t.Errorf("%s: %v, want what was there before", c.describe(a, k, n), v.class)
				}
				v.class = harmless
			}
			tab.add(t, row, v, func() string { return c.describe(a, k, n) })
		})
	}
}

// isNewestMeta reports whether the page that the n-th lost write is of is the
// newer meta page.
func (c *corpus) isNewestMeta(n int) bool {
	page := n % (len(c.sound) / pageSize)
	return page < 2 && metaAt(c.sound, page).txid == newestMeta(c.sound).txid
}
