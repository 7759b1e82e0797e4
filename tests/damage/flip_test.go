package damage_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
	"time"
)

func TestDraft(t *testing.T) {
	for _, name := range []string{"few", "many"} {
		c := theCorpus(t, name)
		a, err := dissect(c.sound)
		must(t, err)
		t.Logf("%s: %d pages, %d free, depth %d, %d branches %x", name, len(c.sound)/pageSize, a.free, a.depth, a.branches, sha256.Sum256(c.sound))
		if os.Getenv("HASH") != "" {
			continue
		}
		var list []int
		for i, r := range a.of {
			if r == pageHeader || r == branchElement || r == metaPage || r == freeList || r == bucketHeader || r == branchKey || i%149 == 0 {
				for b := range 8 {
					list = append(list, i*8+b)
				}
			}
		}
		if os.Getenv("LESS") != "" {
			var l []int
			for i := 0; i < len(list); i += 37 {
				l = append(l, list[i])
			}
			list = l
		}
		start := time.Now()
		var table [regions][classes]int
		shown := map[string]int{}
		c.examine(t, kind(os.Getenv("KIND")), list, func(n int, v verdict) {
			r := a.of[n/8]
			table[r][v.class]++
			if v.class > found {
				k := fmt.Sprint(r, v.class)
				if shown[k]++; shown[k] < 4 {
					t.Logf("%s: %v: %s", c.describe(a, flip, n), v.class, v.detail)
				}
			}
		})
		t.Logf("%v for %d", time.Since(start), len(list))
		for r, row := range table {
			s := ""
			for cl, n := range row {
				if n > 0 {
					s += fmt.Sprintf(" %v=%d", class(cl), n)
				}
			}
			t.Log(region(r), s)
		}
	}
}
