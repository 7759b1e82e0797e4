// Package tally counts what the clients were told against what the store holds.
package tally

import (
	"math/bits"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
)

// Tally is what the clients of one act were told.
type Tally struct {
	Before       int   // the balance at the beginning
	Acknowledged []int // the withdrawals to which the store said yes
}

// Result compares it with the balance at the end.
func (t *Tally) Result(after int) event.Result {
	expected := t.Before
	for _, amount := range t.Acknowledged {
		expected -= amount
	}
	return event.Result{Expected: expected, Actual: after, LostUpdates: lost(t.Acknowledged, after-expected)}
}

// lost is the least number of withdrawals that add up to missing. If none do,
// all count as lost: the balance is then not explained by the others either.
func lost(amounts []int, missing int) int {
	least := len(amounts)
	if missing != 0 {
		least = max(least, 1)
	}
	for set := range uint(1) << len(amounts) {
		sum := 0
		for i, amount := range amounts {
			if set&(1<<i) != 0 {
				sum += amount
			}
		}
		if sum == missing {
			least = min(least, bits.OnesCount(set))
		}
	}
	return least
}
