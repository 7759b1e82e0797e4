package model_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/tests/redlock/model"
)

// floor is one that is above what two clients count to without floors.
const floor = 3

// large is whether searches of more than a million states are made: MODEL=full.
var large = os.Getenv("MODEL") == "full"

// memory is what the largest search may take, in MiB.
const memory = 6 << 10

func TestNoBehaviourBreaksThePromise(t *testing.T) {
	type sized struct {
		search model.Search
		least  int // states; fewer would be another model
	}
	searches := []sized{
		{model.Search{Acquisitions: 2, Floors: []uint64{floor}}, 300_000},
		{model.Search{Acquisitions: 2, Floors: []uint64{floor}, Renewals: true}, 500_000},
	}
	if large {
		searches = []sized{
			{model.Search{Acquisitions: 2, Floors: []uint64{floor}, Doubled: 1}, 10_000_000},
			{model.Search{Acquisitions: 3}, 10_000_000},
		}
	}
	for _, s := range searches {
		t.Run(s.search.String(), func(t *testing.T) {
			r := run(t, s.search)
			if r.Violation != nil {
				t.Fatal(explained(t, s.search))
			}
			if !r.Complete || r.States < s.least {
				t.Errorf("%d states, complete: %v; want all of at least %d", r.States, r.Complete, s.least)
			}
		})
	}
}

// TestEveryDefectIsFound are the controls: each step of the algorithm left out, and
// each thing that it needs taken away.
func TestEveryDefectIsFound(t *testing.T) {
	controls := []model.Search{
		{Defect: model.NoWriteBack},
		{Defect: model.NoOwnerCheck},
		{Defect: model.NoCounterCheck, Doubled: 1},
		{Defect: model.LateReplies},
		{Defect: model.Minority},
		{Defect: model.TakenIsConfirmed},
		{Defect: model.Forgets},
	}
	for _, s := range controls {
		s.Acquisitions = 2
		t.Run(string(s.Defect), func(t *testing.T) {
			if r := run(t, s); r.Violation == nil {
				t.Errorf("%d states, and no violation", r.States)
			} else {
				t.Log(r.Violation.What)
			}
		})
	}
	if large {
		// A counter that a repair sets back is seen by a third client only.
		t.Run(string(model.RepairsPassed), func(t *testing.T) {
			if r := run(t, model.Search{Acquisitions: 3, Renewals: true, Defect: model.RepairsPassed}); r.Violation == nil {
				t.Errorf("%d states, and no violation", r.States)
			}
		})
	}
}

// TestCounterCheckIsForDoubledTakes: with each take arriving once, nothing is wrong
// without it.
func TestCounterCheckIsForDoubledTakes(t *testing.T) {
	r := run(t, model.Search{Acquisitions: 2, Defect: model.NoCounterCheck})
	if r.Violation != nil || !r.Complete {
		t.Errorf("%d states, violation %v", r.States, r.Violation)
	}
}

func TestViolationsAreExplained(t *testing.T) {
	text := explained(t, model.Search{Acquisitions: 2, Defect: model.Minority})
	for _, want := range []string{"clients 1 and 2 both have the token 1", "server 1: take by client 1", "client 2 counts 1 servers"} {
		if !strings.Contains(text, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, text)
		}
	}
}

func TestStateThatDoesNotFitIsAnError(t *testing.T) {
	if _, err := (model.Search{Acquisitions: 3, Doubled: 3, Floors: []uint64{floor}}).Run(); err == nil {
		t.Error("a state of more than 128 bits was not refused")
	}
	if _, err := (model.Search{Acquisitions: 2, Floors: []uint64{15}}).Run(); err == nil {
		t.Error("a number beyond 4 bits was not refused")
	}
}

func run(t *testing.T, s model.Search) model.Result {
	t.Helper()
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d states, %d MiB", r.States, m.Sys>>20)
	if m.Sys>>20 > memory {
		t.Errorf("it took %d MiB, want at most %d", m.Sys>>20, memory)
	}
	return r
}

// explained runs a search again to tell how the violation comes.
func explained(t *testing.T, s model.Search) string {
	t.Helper()
	s.Explain = true
	r, err := s.Run()
	if err != nil || r.Violation == nil {
		t.Fatalf("the second time: %+v, %v", r, err)
	}
	return fmt.Sprintf("%s\n\t%s", r.Violation.What, strings.Join(r.Violation.Path, "\n\t"))
}
