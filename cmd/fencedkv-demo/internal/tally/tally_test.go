package tally_test

import (
	"testing"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/tally"
)

func TestResultCountsAcknowledgedWithdrawalsThatAreMissing(t *testing.T) {
	for _, c := range []struct {
		name         string
		acknowledged []int
		after        int
		want         event.Result
	}{
		{"none lost", []int{30, 20}, 50, event.Result{Expected: 50, Actual: 50}},
		{"the second lost", []int{30, 20}, 70, event.Result{Expected: 50, Actual: 70, LostUpdates: 1}},
		{"the first lost", []int{30, 20}, 80, event.Result{Expected: 50, Actual: 80, LostUpdates: 1}},
		{"both lost", []int{30, 20}, 100, event.Result{Expected: 50, Actual: 100, LostUpdates: 2}},
		{"one refused", []int{20}, 80, event.Result{Expected: 80, Actual: 80}},
		{"not explained", []int{30, 20}, 60, event.Result{Expected: 50, Actual: 60, LostUpdates: 2}},
		{"written without a yes", nil, 70, event.Result{Expected: 100, Actual: 70, LostUpdates: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sum := tally.Tally{Before: 100, Acknowledged: c.acknowledged}
			if got := sum.Result(c.after); got != c.want {
				t.Errorf("Result(%d) = %+v, want %+v", c.after, got, c.want)
			}
		})
	}
}
