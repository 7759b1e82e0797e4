package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Explain shows where the checker comes to an end: the state after the longest
// order that it found, the last operations of that order, and the next of those
// that have no place in it.
func Explain(h Events) string {
	const most = 10
	_, info := porcupine.CheckOperationsVerbose(model, h.Operations(), Patience)
	var b strings.Builder
	for _, orders := range info.PartialLinearizationsOperations() {
		if len(orders) == 0 {
			continue
		}
		longest := slices.MaxFunc(orders, func(x, y []porcupine.Operation) int { return cmp.Compare(len(x), len(y)) })
		placed, s := map[int64]bool{}, any(State{})
		for _, o := range longest {
			placed[o.Call] = true
			_, s = model.Step(s, o.Input, o.Output)
		}
		left := slices.DeleteFunc(h.Operations(), func(o porcupine.Operation) bool { return placed[o.Call] })
		fmt.Fprintf(&b, "%d operations in order, state %+v; the last of them:\n", len(longest), s)
		for _, o := range longest[max(0, len(longest)-most):] {
			fmt.Fprintf(&b, "  %d to %d: %+v: %+v\n", o.Call, o.Return, o.Input, o.Output)
		}
		fmt.Fprintf(&b, "%d without a place, the first of them:\n", len(left))
		for _, o := range left[:min(most, len(left))] {
			fmt.Fprintf(&b, "  %d to %d: %+v: %+v\n", o.Call, o.Return, o.Input, o.Output)
		}
	}
	return b.String()
}
