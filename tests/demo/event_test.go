package demo_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// event is a line of --json, as far as the tests look at it.
type event struct {
	Event    string      `json:"event"`
	Act      string      `json:"act"`
	Client   string      `json:"client"`
	Resource string      `json:"resource"`
	Token    fence.Token `json:"token"`
	Offered  fence.Token `json:"offered"`
	Highest  fence.Token `json:"highest"`
	Reason   string      `json:"reason"`
	PID      int         `json:"pid"`
}

// parse reads every line and fails on one that is not an object.
func parse(t *testing.T, stdout string) (events []event) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("the line %q is no JSON object: %v", line, err)
		}
		if e.Event == "" {
			t.Fatalf("the line %q has no event", line)
		}
		events = append(events, e)
	}
	return events
}

// script is what happens in one act, and who does it.
func script(events []event, act string) (steps []string) {
	for _, e := range events {
		if e.Act == act {
			steps = append(steps, strings.TrimSpace(e.Client+" "+e.Event))
		}
	}
	return steps
}

func find(t *testing.T, events []event, act, client, name string) event {
	t.Helper()
	i := slices.IndexFunc(events, func(e event) bool { return e.Act == act && e.Client == client && e.Event == name })
	if i < 0 {
		t.Fatalf("client %s has no event %q in the %s act", client, name, act)
	}
	return events[i]
}

// unfencedScript and fencedScript are the play, event by event.
var unfencedScript = []string{
	"act_started",
	"A acquiring", "A acquired", "A read", "A lease_checked", "A about_to_write", "A stopped",
	"B acquiring", "A lease_expired", "B acquired", "B read", "B lease_checked", "B writing", "B written", "B released",
	"A continued", "A writing", "A written", "A lease_lost",
	"act_ended",
}

var fencedScript = []string{
	"act_started",
	"A acquiring", "A acquired", "A raised", "A read", "A lease_checked", "A about_to_write", "A stopped",
	"B acquiring", "A lease_expired", "B acquired", "B raised", "B read", "B lease_checked", "B writing", "B written", "B released",
	"A continued", "A writing", "A rejected", "A lease_lost", "A retrying",
	"A acquiring", "A acquired", "A raised", "A read", "A lease_checked", "A writing", "A written", "A released",
	"act_ended",
}

// checkShown fails unless stdout is the whole play: both scripts, the refusal
// with the right tokens, and the summary.
func checkShown(t *testing.T, stdout string) []event {
	t.Helper()
	events := parse(t, stdout)
	for act, want := range map[string][]string{"unfenced": unfencedScript, "fenced": fencedScript} {
		if got := script(events, act); !slices.Equal(got, want) {
			t.Errorf("the %s act is\n%q\nwant\n%q", act, got, want)
		}
	}
	a, b := find(t, events, "fenced", "A", "acquired"), find(t, events, "fenced", "B", "acquired")
	refused := find(t, events, "fenced", "A", "rejected")
	if refused.Resource != "accounts/42" || refused.Offered != a.Token || refused.Highest != b.Token || refused.Reason != "stale" {
		t.Errorf("rejected is %+v, want resource accounts/42, offered %v, highest %v, reason stale", refused, a.Token, b.Token)
	}
	if a.Token.Lineage != b.Token.Lineage || a.Token.Seq >= b.Token.Seq {
		t.Errorf("client A has token %v and then client B %v, want a higher one of one lineage", a.Token, b.Token)
	}
	checkSummary(t, stdout)
	return events
}

func checkSummary(t *testing.T, stdout string) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace([]byte(stdout)), []byte("\n"))
	var last map[string]any
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil {
		t.Fatal(err)
	}
	delete(last, "at_ms")
	got, err := json.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"actual":{"fenced":50,"unfenced":70},"event":"summary","expected":{"fenced":50,"unfenced":50},` +
		`"lost_updates":{"fenced":0,"unfenced":1},"shown":true}`
	if string(got) != want {
		t.Errorf("the last line is %s, want %s and at_ms", got, want)
	}
}
