package timeline_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/timeline"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// everything is one event of each kind from each client, with the tokens given.
func everything(older, newer uint64) []event.Event {
	a := fence.Token{Lineage: "l", Seq: older, Holder: "a"}
	b := fence.Token{Lineage: "l", Seq: newer, Holder: "b"}
	all := []event.Event{
		{Name: event.Started, Lock: "redis://a-host-with-a-rather-long-name.of-a-cloud.example.com:6379/12", TTLMS: 1000},
		{Name: event.ActStarted, Act: event.Fenced, Balance: new(100)},
	}
	for _, client := range []string{event.ClientA, event.ClientB} {
		all = append(all,
			event.Event{Name: event.Acquiring, Client: client},
			event.Event{Name: event.Acquired, Client: client, Token: a},
			event.Event{Name: event.Raised, Client: client, Token: a},
			event.Event{Name: event.Read, Client: client, Balance: new(100)},
			event.Event{Name: event.LeaseChecked, Client: client, Valid: new(true)},
			event.Event{Name: event.LeaseChecked, Client: client, Valid: new(false)},
			event.Event{Name: event.AboutToWrite, Client: client, Balance: new(70)},
			event.Event{Name: event.Stopped, Client: client, How: event.HowSignal},
			event.Event{Name: event.LeaseExpired, Client: client, Token: a},
			event.Event{Name: event.Continued, Client: client, How: event.HowSignal},
			event.Event{Name: event.Stopped, Client: client, How: event.HowBlocked},
			event.Event{Name: event.Continued, Client: client, How: event.HowBlocked},
			event.Event{Name: event.Writing, Client: client, Balance: new(70), Token: a},
			event.Event{Name: event.Written, Client: client, Balance: new(70)},
			event.Event{Name: event.Rejected, Client: client, Offered: a, Highest: b},
			event.Event{Name: event.LeaseLost, Client: client},
			event.Event{Name: event.Retrying, Client: client},
			event.Event{Name: event.Released, Client: client},
		)
	}
	return append(all, event.Event{
		Name: event.ActEnded, Act: event.Fenced, Result: &event.Result{Expected: 50, Actual: 50},
	})
}

func draw(t *testing.T, colour bool, older, newer uint64) string {
	t.Helper()
	var out strings.Builder
	tl := timeline.New(&out, colour)
	for i, e := range everything(older, newer) {
		e.AtMS = int64(i) * 7
		if err := tl.Event(e); err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
	}
	if err := tl.Summary(event.Summary{LostUpdates: event.PerAct{Unfenced: 1}, Shown: true}); err != nil {
		t.Fatalf("summary: %v", err)
	}
	return out.String()
}

func TestNoLineIsWiderThan79ColumnsHoweverLongTheTokens(t *testing.T) {
	for _, seq := range []uint64{33, 1_796_051_484_515_944, math.MaxUint64 - 1} {
		for line := range strings.Lines(draw(t, false, seq, seq+1)) {
			if got := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); got > 79 {
				t.Errorf("with token %d: %d columns, want at most 79: %s", seq, got, line)
			}
		}
	}
}

func TestARefusalShowsBothTokensOfAnyLength(t *testing.T) {
	got := draw(t, false, math.MaxUint64-1, math.MaxUint64)
	want := "REFUSED: 18446744073709551614 < 18446744073709551615"
	if !strings.Contains(got, want) {
		t.Errorf("the timeline lacks %q:\n%s", want, got)
	}
}

func TestPlainOutputIsColouredOutputWithoutItsCodes(t *testing.T) {
	plain, coloured := draw(t, false, 33, 34), draw(t, true, 33, 34)
	if strings.Contains(plain, "\x1b") {
		t.Errorf("plain output has escape codes:\n%q", plain)
	}
	if !strings.Contains(coloured, "\x1b[31") {
		t.Errorf("coloured output has no red:\n%q", coloured)
	}
	var bare strings.Builder
	for i, part := range strings.Split(coloured, "\x1b[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "m")
		}
		bare.WriteString(part)
	}
	if bare.String() != plain {
		t.Errorf("got without codes:\n%s\nwant:\n%s", bare.String(), plain)
	}
}

func TestAnErrorOfTheWriterIsReturned(t *testing.T) {
	err := timeline.New(brokenWriter{}, false).Event(event.Event{Name: event.Started})
	if !errors.Is(err, errBroken) {
		t.Errorf("Event = %v, want %v", err, errBroken)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
