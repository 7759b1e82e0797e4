package rivals_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchlocks/rivals"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// names are those of the ratios, in the order of the report.
var names = strings.Fields(`
	acquire-redislock acquire-redsync1 acquire-redsync5 acquire-etcd acquire-etcd-session acquire-zk
	handover-redislock handover-redsync handover-etcd handover-zk
	fairness-redis fairness-etcd fairness-zk`)

// TestAShortRunEndsWithEveryRatio runs everything for as short a time as there
// is.
func TestAShortRunEndsWithEveryRatio(t *testing.T) {
	var out bytes.Buffer
	if err := rivals.Run(t.Context(), rivals.Config{Budget: 10 * time.Second, Seed: 1}, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) < len(names) {
		t.Fatalf("got %d lines:\n%s", len(lines), &out)
	}
	for i, line := range lines[len(lines)-len(names):] {
		if want := regexp.MustCompile(`^ratio ` + names[i] + ` [0-9]+\.[0-9]{3}$`); !want.MatchString(line) {
			t.Errorf("got %q, want %v", line, want)
		}
	}
}

// TestOnlyOursCountForFairness: the fairness of a rival is no figure of ours.
func TestOnlyOursCountForFairness(t *testing.T) {
	got := map[string]float64{}
	for _, r := range rivals.Ratios(measure.Results{"handover-zk": {
		"ours": {{Ops: 100, Elapsed: time.Second, Fewest: 9, Most: 10}},
		"lock": {{Ops: 50, Elapsed: time.Second, Fewest: 1, Most: 10}},
	}}) {
		got[r.Name] = r.Value
	}
	if len(got) != 2 || got["handover-zk"] != 2 || got["fairness-zk"] != 0.9 {
		t.Errorf("got %v, want handover-zk 2 and fairness-zk 0.9 alone", got)
	}
}

func TestACaseThatIsNotThereIsNamed(t *testing.T) {
	err := rivals.Run(t.Context(), rivals.Config{Budget: 10 * time.Second, Only: regexp.MustCompile("^none$")}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("got %v, want an error that names it", err)
	}
}
