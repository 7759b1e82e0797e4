package prove_test

import (
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fencedkv/fencedkv/tests/internal/history"
)

var seed = flag.Uint64("seed", 0, "seed of the runs; 0 takes the clock")

// duration is how long each run lasts at least: PROVE_TIME, or some seconds.
func duration(t *testing.T) time.Duration {
	text := os.Getenv("PROVE_TIME")
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("PROVE_TIME is %q, want a time such as 1m", text)
	}
	return d
}

func nameOf(client int) string { return fmt.Sprintf("client-%d", client) }

// TestFencingLosesNoUpdate: what a stopped holder writes when it wakes costs
// updates in a plain map, and none in the store, whichever service gives the
// lock.
func TestFencingLosesNoUpdate(t *testing.T) {
	base := *seed
	if base == 0 {
		base = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat the stops with -seed %d", base)
	atLeast := duration(t)
	var rows []row
	for n, s := range services {
		ok := t.Run(s.name, func(t *testing.T) {
			lock := service{Name: s.name, Addrs: s.start(t)}
			r := row{Service: s.name}
			for m, fenced := range []bool{false, true} {
				lock.Namespace = strings.ToLower(rand.Text())
				o := run(t, lock, fenced, atLeast, base+uint64(2*n+m))
				t.Logf("fenced %v: %d increments acknowledged, counter %d; %d stops; %d refusals, %d of writes; %d events",
					fenced, o.acknowledged, o.value, o.stops, o.refusals, o.late, len(o.events))
				if o.indefinite > 0 {
					t.Fatalf("%d calls have no definite outcome, want none", o.indefinite)
				}
				if fenced {
					requireSafe(t, o)
					r.Fenced = figures(o)
				} else {
					requireLoss(t, o)
					r.Unfenced = figures(o)
				}
			}
			rows = append(rows, r)
		})
		if !ok {
			return
		}
	}
	report(t, rows, atLeast)
}

// requireLoss fails the test if the control shows nothing.
func requireLoss(t *testing.T, o outcome) {
	t.Helper()
	if o.lost() < 1 {
		t.Fatalf("no update was lost without fencing in %d increments and %d stops, which proves nothing: "+
			"no stop has hit a client between its read and its write; give it more time with PROVE_TIME=5m, or an idle machine",
			o.acknowledged, o.stops)
	}
}

// requireSafe fails the test if the store has lost an update, or if its history
// cannot be explained.
func requireSafe(t *testing.T, o outcome) {
	t.Helper()
	if o.lost() != 0 {
		t.Errorf("the counter is %d after %d acknowledged increments: %d are lost, want none", o.value, o.acknowledged, o.lost())
	}
	began := time.Now()
	if got := history.Check(o.events); got != porcupine.Ok {
		t.Errorf("the checker says %q, want %q:\n%v", got, porcupine.Ok, history.Explain(o.events))
	}
	t.Logf("checked %d events in %v", len(o.events), time.Since(began))
	if o.late == 0 && !t.Failed() {
		t.Fatalf("no write was refused in %d increments and %d stops, which proves nothing: "+
			"no stop has hit a client between its read and its write; give it more time with PROVE_TIME=5m, or an idle machine",
			o.acknowledged, o.stops)
	}
}
