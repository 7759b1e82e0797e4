package prove_test

import (
	"flag"
	"fmt"
	"os"
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
	rows := make([]row, len(services))
	t.Cleanup(func() { // when all services are through
		if !t.Failed() {
			report(t, rows, atLeast)
		}
	})
	for n, s := range services {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			lock := service{Name: s.name, Addrs: s.start(t)}
			control := run(t, lock.anew(), false, atLeast, base+uint64(2*n))
			requireLoss(t, control)
			proof := run(t, lock.anew(), true, atLeast, base+uint64(2*n)+1)
			requireSafe(t, proof)
			rows[n] = row{Service: s.name, Unfenced: figures(control), Fenced: figures(proof)}
		})
	}
}

// requireLoss fails the test if the control shows nothing.
func requireLoss(t *testing.T, o outcome) {
	t.Helper()
	requireDefinite(t, o)
	if o.lost() < 1 {
		t.Fatalf("no update was lost without fencing, which proves nothing: %s", luck(o))
	}
}

// requireSafe fails the test if the store has lost an update, or if its history
// cannot be explained.
func requireSafe(t *testing.T, o outcome) {
	t.Helper()
	requireDefinite(t, o)
	if o.lost() != 0 {
		t.Fatalf("the counter is %d after %d acknowledged increments: %d are lost, want none", o.value, o.acknowledged, o.lost())
	}
	if got := history.Check(o.events); got != porcupine.Ok {
		t.Fatalf("the checker says %q, want %q:\n%v", got, porcupine.Ok, history.Explain(o.events))
	}
	if o.late == 0 {
		t.Fatalf("no write was refused with fencing, which proves nothing: %s", luck(o))
	}
}

func luck(o outcome) string {
	return fmt.Sprintf("in %d increments and %d stops none has hit a client between its read and its write; "+
		"give it more time, such as PROVE_TIME=5m, or an idle machine", o.acknowledged, o.stops)
}

// requireDefinite fails the test if a client does not know whether its call was
// carried out. Nothing here can cause that: there is no time-out.
func requireDefinite(t *testing.T, o outcome) {
	t.Helper()
	if o.indefinite > 0 {
		t.Fatalf("%d calls have no definite outcome, want none", o.indefinite)
	}
}
