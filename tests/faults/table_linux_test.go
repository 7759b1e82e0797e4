package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// table is the matrix of verdicts. A cell that has not run is empty.
type table struct {
	mu    sync.Mutex
	cells map[string]verdict
}

func cellKey(adapter, moment, fault string) string { return adapter + "/" + moment + "/" + fault }

func (t *table) set(adapter, moment, fault string, v verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cells == nil {
		t.cells = map[string]verdict{}
	}
	t.cells[cellKey(adapter, moment, fault)] = v
}

// String is the matrix: the margins where the victim lost its lock by the clock, and
// in the last column the worst of the row.
func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	for line := range 2 {
		fmt.Fprint(w, "\t")
		for _, f := range faults {
			words := strings.SplitN(f.name+" ", " ", 3)
			fmt.Fprint(w, words[line], "\t")
		}
		fmt.Fprintln(w, []string{"worst", "margin"}[line])
	}
	for _, a := range adapters {
		if !t.ran(a.name) {
			continue
		}
		for _, m := range moments {
			fmt.Fprintf(w, "%s %s\t", a.name, m.name)
			worst, told := time.Duration(0), false
			for _, f := range faults {
				v, ran := t.cells[cellKey(a.name, m.name, f.name)]
				why := whyNot(a.name, m.name, f.name)
				switch {
				case why != "":
					fmt.Fprintf(w, "n/a %d", slices.Index(reasons(), why)+1)
				case !ran:
				case len(v.errs) > 0:
					fmt.Fprint(w, "FAIL")
				case v.told:
					fmt.Fprint(w, v.margin.Round(time.Millisecond))
				default:
					fmt.Fprint(w, "ok")
				}
				fmt.Fprint(w, "\t")
				if v.told && (!told || v.margin < worst) {
					worst, told = v.margin, true
				}
			}
			if told {
				fmt.Fprint(w, worst.Round(time.Millisecond/10))
			}
			fmt.Fprintln(w)
		}
	}
	_ = w.Flush() // a strings.Builder takes everything
	for i, why := range reasons() {
		fmt.Fprintf(&b, "n/a %d: %s\n", i+1, why)
	}
	return b.String()
}

func (t *table) ran(adapter string) bool {
	for key := range t.cells {
		if strings.HasPrefix(key, adapter+"/") {
			return true
		}
	}
	return false
}
