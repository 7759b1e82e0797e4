package damage_test

import "testing"

// TestDamageWhileOpen makes files shorter, moves them and writes over them while
// a store has them open. No read is wrong, none crashes, nothing stale is
// admitted, and a write does not go to a file that the path no longer names.
func TestDamageWhileOpen(t *testing.T) {
	for _, name := range []string{"few", "many", "few-old", "many-old"} {
		c := theCorpus(t, name)
		kinds := map[kind]int{cut: len(c.sizes()), zeros: len(c.sizes()), moved: len(ways), aged: len(c.older)}
		if recipes[name].reuse { // else older copies have nothing where the last state has its pages
			kinds = map[kind]int{aged: len(c.older)}
		}
		for k, n := range kinds {
			t.Run(name+" "+string(k), func(t *testing.T) {
				list := make([]int, n)
				for i := range list {
					list[i] = i
				}
				tab := newTable()
				c.examine(t, k, list, func(n int, v verdict) {
					row := string(k)
					if k == moved {
						row = ways[n].name
					}
					tab.add(t, row, v, func() string { return c.describeOpen(k, n) })
				})
				t.Logf("\n%v", tab)
			})
		}
	}
}
