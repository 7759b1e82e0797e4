package crash_test

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestPowerFailureKeepsThePromises: whatever part of the unsynced writes a device
// keeps, whenever the power fails, also after a process died and another one read
// what it had not synced, after a write or a sync failed, and after another power
// failure.
func TestPowerFailureKeepsThePromises(t *testing.T) {
	requireFUSE(t)
	e := explorer{kind: "ours", dir: t.TempDir(), rnd: rand.New(rand.NewPCG(newSeed(t), 0)), errors: true, end: time.Now().Add(duration(t, 0.6))}
	if err := e.explore(t); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d states; children that ended well, met a failure, died: %d", e.states, e.met)
	if children := e.met[happens] + e.met[fails] + e.met[dies]; children > 50 && (e.met[fails] == 0 || e.met[dies] == 0) {
		t.Errorf("of %d children none met a failure, or none died", children)
	}
}
