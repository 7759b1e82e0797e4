package linear_test

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/fencedkv/fencedkv/tests/internal/history"
)

// requireLinearizable fails the test, with an explanation and the whole history,
// if it is not.
func requireLinearizable(t *testing.T, what string, h history.Events) {
	t.Helper()
	if got := history.Check(h); got != porcupine.Ok {
		t.Fatalf("%s: the checker says %q\n%v\nThe history:\n%v", what, got, history.Explain(h), h)
	}
}

// requireWorth fails the test if a history shows too little: without a refusal,
// or with less than 10 % of its operations concurrent.
func requireWorth(t *testing.T, what string, h history.Events) (concurrency float64) {
	t.Helper()
	refusals := 0
	for _, e := range h {
		if !e.Begin && e.Result.Outcome == history.Refused {
			refusals++
		}
	}
	if refusals == 0 {
		t.Fatalf("%s: no refusal in %d events", what, len(h))
	}
	concurrency = h.Concurrency()
	if concurrency < 0.10 {
		t.Fatalf("%s: %.0f %% of the operations are concurrent, want 10 %%", what, 100*concurrency)
	}
	return concurrency
}
