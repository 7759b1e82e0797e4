package device_test

import (
	"maps"
	"slices"
	"syscall"
	"testing"
)

// TestChecksFindDamage shows that each flaw is found, and in the sound toy
// nothing.
func TestChecksFindDamage(t *testing.T) {
	toys := map[string]flaw{
		"sound":                      {},
		"a failed sync is ignored":   {ignoresSync: true},
		"a failed sync is repeated":  {repeatsSync: true},
		"a failed sync is no matter": {goesOn: true},
		"readers do not wait":        {readsAtOnce: true},
		"meta page not written anew": {noSettle: true},
		"name not synced":            {nameUnsynced: true},
	}
	for _, name := range slices.Sorted(maps.Keys(toys)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, f, runs := newDevice(t), toys[name], 0
			step := 1
			if f == (flaw{}) {
				step = 3
			}
			for n := 1; ; n += step {
				r := run{device: d, open: f.open, lenient: true, fault: Fault{Op: opFdatasync, N: n, Errno: syscall.EIO}}
				err := r.do(t)
				runs++
				if err != nil && f != (flaw{}) {
					t.Logf("found in run %d: %v", runs, err)
					return
				}
				if err != nil {
					t.Fatalf("%v: found in the sound toy: %v", r.fault, err)
				}
				if len(r.account.Failures) == 0 {
					break
				}
			}
			if f != (flaw{}) {
				t.Errorf("nothing was found in %d runs", runs)
			}
		})
	}
}
