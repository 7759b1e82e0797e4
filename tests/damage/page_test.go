package damage_test

import "testing"

// TestDamagedPages zeroes each page, swaps each with each other one (of the larger
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
			c, tab := theCorpus(t, name), newTable()
			every := 1
			if name == "many" {
				every = 8
			}
			damagePages(t, c, tab, zero, func(int) bool { return true })
			damagePages(t, c, tab, swap, func(n int) bool { return n%every == 0 })
			tab.wantGolden(t, "pages-"+name)
			if full() {
				tab = newTable()
				damagePages(t, c, tab, swap, func(n int) bool { return n%every > 0 })
				t.Logf("the other pairs\n%v", tab)
			}
		})
		t.Run(name+" lost writes", func(t *testing.T) {
			tab := newTable()
			damagePages(t, theCorpus(t, name+"-old"), tab, lose, func(int) bool { return true })
			t.Logf("\n%v", tab)
			if tab.count(harmless) == 0 || tab.count(openDamage) == 0 {
				t.Error("a lost write of a page that is free is harmless, and one that is in use is not")
			}
		})
	}
}

func damagePages(t *testing.T, c *corpus, tab *table, k kind, take func(n int) bool) {
	a, err := dissect(c.sound)
	must(t, err)
	var list []int
	for n := range c.number(k) {
		if c.damaged(k, n) != nil && take(n) {
			list = append(list, n)
		}
	}
	c.examine(t, k, list, func(n int, v verdict) {
		row := string(k)
		if k == lose && c.isNewestMeta(n) {
			// The meta page of the last commit: the store as it was before it is
			// whole, and nothing in the file says that there was more.
			row = "lose, whole"
			if v.class != wrong && v.class != lost && v.class != admitted {
				t.Errorf("%s: %v, want what was there before", c.describe(a, k, n), v.class)
			}
			v.class = harmless
		}
		tab.add(t, row, v, func() string { return c.describe(a, k, n) })
	})
}

// isNewestMeta reports whether the page that the n-th lost write is of is the
// newer meta page.
func (c *corpus) isNewestMeta(n int) bool {
	page := n % (len(c.sound) / pageSize)
	return page < 2 && metaAt(c.sound, page).txid == newestMeta(c.sound).txid
}
