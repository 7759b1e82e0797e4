package linear_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// event is the beginning of an operation or its end. Of one client at most one
// operation has begun and not ended.
type event struct {
	Client int
	Begin  bool
	Op     operation // of a beginning
	Result result    // of an end
}

// history is what happened, in order.
type history []event

// operations pairs beginnings with ends. What never ended has an unknown outcome.
func (h history) operations() []porcupine.Operation {
	var all []porcupine.Operation
	open := map[int]int{}
	for at, e := range h {
		if e.Begin {
			open[e.Client] = len(all)
			all = append(all, porcupine.Operation{
				ClientId: e.Client, Input: e.Op, Call: int64(at),
				Output: result{Outcome: unknown}, Return: math.MaxInt64,
			})
			continue
		}
		i := open[e.Client]
		all[i].Output = e.Result
		if e.Result.Outcome != unknown {
			all[i].Return = int64(at)
		}
	}
	return all
}

// model accepts exactly what respond says. An operation of unknown outcome ends
// after everything else, so that it may take effect at any moment after its
// beginning; put last, where nobody reads, it has had none.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, input, output any) (bool, any) {
		before, r := s.(state), output.(result)
		if r.Outcome == notApplied {
			return true, before
		}
		want, next := respond(before, input.(operation))
		if r.Outcome == unknown {
			return true, next
		}
		r.Detail = ""
		return r == want, next
	},
}

// patience is how long the checker may take for one history. Longer is a
// failure, not a pass.
const patience = 2 * time.Minute

// check returns what the checker says of a history.
func check(h history) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model, h.operations(), patience)
}

// requireLinearizable fails the test, with an explanation and the whole history,
// if it is not.
func requireLinearizable(t *testing.T, what string, h history) {
	t.Helper()
	if got := check(h); got != porcupine.Ok {
		t.Fatalf("%s: the checker says %q\n%v\nThe history:\n%v", what, got, explain(h), h)
	}
}

// requireWorth fails the test if a history shows too little: without a refusal,
// or with less than 10 % of its operations concurrent.
func requireWorth(t *testing.T, what string, h history) (concurrency float64) {
	t.Helper()
	refusals := 0
	for _, e := range h {
		if !e.Begin && e.Result.Outcome == refused {
			refusals++
		}
	}
	if refusals == 0 {
		t.Fatalf("%s: no refusal in %d events", what, len(h))
	}
	concurrency = h.concurrency()
	if concurrency < 0.10 {
		t.Fatalf("%s: %.0f %% of the operations are concurrent, want 10 %%", what, 100*concurrency)
	}
	return concurrency
}

// concurrency is the part of the operations that run while another one runs that
// touches the same resource.
func (h history) concurrency() float64 {
	all := h.operations()
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
	x, y := a.Input.(operation), b.Input.(operation)
	return x.touches(y.Resource) || y.touches(x.Resource) || x.Kind == kindMove && y.touches(x.Other)
}

func (h history) String() string {
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
