package history

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Event is the beginning of an operation or its end. Of one client at most one
// operation has begun and not ended.
type Event struct {
	Client int
	Begin  bool
	Op     Operation // of a beginning
	Result Result    // of an end
}

// Events is what happened, in order.
type Events []Event

// Operations pairs beginnings with ends. What never ended has an unknown outcome.
func (h Events) Operations() []porcupine.Operation {
	var all []porcupine.Operation
	open := map[int]int{}
	for at, e := range h {
		if e.Begin {
			open[e.Client] = len(all)
			all = append(all, porcupine.Operation{
				ClientId: e.Client, Input: e.Op, Call: int64(at),
				Output: Result{Outcome: Unknown}, Return: math.MaxInt64,
			})
			continue
		}
		i := open[e.Client]
		all[i].Output = e.Result
		if e.Result.Outcome != Unknown {
			all[i].Return = int64(at)
		}
	}
	return all
}

// model accepts exactly what Respond says. An operation of unknown outcome ends
// after everything else, so that it may take effect at any moment after its
// beginning; put last, where nobody reads, it has had none.
var model = porcupine.Model{
	Init: func() any { return State{} },
	Step: func(s, input, output any) (bool, any) {
		before, r := s.(State), output.(Result)
		if r.Outcome == NotApplied {
			return true, before
		}
		want, next := Respond(before, input.(Operation))
		if r.Outcome == Unknown {
			return true, next
		}
		r.Detail = ""
		return r == want, next
	},
}

// Patience is how long the checker may take for one history. Longer is a
// failure, not a pass.
const Patience = 2 * time.Minute

// Check returns what the checker says of a history.
func Check(h Events) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model, h.Operations(), Patience)
}

// Concurrency is the part of the operations that run while another one runs that
// touches the same resource.
func (h Events) Concurrency() float64 {
	all := h.Operations()
	beside := 0
	for i, a := range all {
		for j, b := range all {
			if i != j && a.Call < b.Return && b.Call < a.Return && share(a, b) {
				beside++
				break
			}
		}
	}
	return float64(beside) / float64(len(all))
}

func share(a, b porcupine.Operation) bool {
	x, y := a.Input.(Operation), b.Input.(Operation)
	return x.Touches(y.Resource) || y.Touches(x.Resource) || x.Kind == Move && y.Touches(x.Other)
}

// String has a line for each event.
func (h Events) String() string {
	var b strings.Builder
	for at, e := range h {
		if e.Begin {
			fmt.Fprintf(&b, "%4d client %d begins %+v\n", at, e.Client, e.Op)
		} else {
			fmt.Fprintf(&b, "%4d client %d ends %+v\n", at, e.Client, e.Result)
		}
	}
	return b.String()
}
