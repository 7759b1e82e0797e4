package damage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// table counts classes by region, or by kind of damage.
type table struct {
	mu   sync.Mutex
	rows map[string]*[classes]int
	told map[string]int
}

func newTable() *table { return &table{rows: map[string]*[classes]int{}, told: map[string]int{}} }

// add counts a verdict. It fails the test if it must never be, and describes
// the first ones.
func (tab *table) add(t *testing.T, row string, v verdict, describe func() string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if tab.rows[row] == nil {
		tab.rows[row] = new([classes]int)
	}
	tab.rows[row][v.class]++
	if v.class < wrote {
		return
	}
	const most = 5 // of one sort
	sort := row + v.class.String()
	if tab.told[sort]++; tab.told[sort] <= most {
		t.Errorf("%s: %v: %s", describe(), v.class, v.detail)
	} else {
		t.Fail()
	}
}

func (tab *table) String() string {
	used := [classes]bool{}
	for _, row := range tab.rows {
		for c, n := range row {
			used[c] = used[c] || n > 0 || class(c) < wrote
		}
	}
	var b strings.Builder
	line := func(name, sum string, cell func(class) string) {
		fmt.Fprintf(&b, "%-15s %9s", name, sum)
		for c := range classes {
			if used[c] {
				fmt.Fprintf(&b, " %14s", cell(c))
			}
		}
		b.WriteByte('\n')
	}
	line("", "all", class.String)
	var all [classes]int
	names := make([]string, 0, len(tab.rows))
	for name := range tab.rows {
		names = append(names, name)
	}
	slices.Sort(names)
	count := func(row [classes]int) (sum string, cell func(class) string) {
		n := 0
		for _, k := range row {
			n += k
		}
		return fmt.Sprint(n), func(c class) string { return fmt.Sprint(row[c]) }
	}
	for _, name := range names {
		sum, cell := count(*tab.rows[name])
		line(name, sum, cell)
		for c, n := range tab.rows[name] {
			all[c] += n
		}
	}
	sum, cell := count(all)
	line("all", sum, cell)
	return b.String()
}

// count returns how many are of a class.
func (tab *table) count(c class) (n int) {
	for _, row := range tab.rows {
		n += row[c]
	}
	return n
}

// wantGolden compares a table with the one in testdata.
func (tab *table) wantGolden(t *testing.T, name string) {
	t.Helper()
	got := tab.String()
	t.Logf("%s\n%s", name, got)
	if pageSize != 4096 {
		t.Logf("pages of %d bytes: the table in testdata is of pages of 4096", pageSize)
		return
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if got != string(want) {
		t.Errorf("the numbers are not those of %s; if the change is right, write it with -update. Want\n%s", file, want)
	}
}
