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
	return drawWide(t, timeline.DefaultColumns, colour, older, newer)
}

func drawWide(t *testing.T, columns int, colour bool, older, newer uint64) string {
	t.Helper()
	var out strings.Builder
	tl := timeline.New(&out, columns, colour)
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

func TestNoLineIsWiderThanTheTerminalHoweverLongTheTokens(t *testing.T) {
	for _, columns := range []int{-1, 1, 2, 30, 52, 53, 79, 80, 81, 120, 200, math.MaxInt} {
		for _, seq := range []uint64{33, 1_796_051_484_515_944, math.MaxUint64 - 1} {
			for line := range strings.Lines(drawWide(t, columns, false, seq, seq+1)) {
				line = strings.TrimSuffix(line, "\n")
				if got, most := utf8.RuneCountInString(line), max(columns-1, 1); got > most {
					t.Errorf("%d columns, token %d: a line of %d, want at most %d: %s", columns, seq, got, most, line)
				}
			}
		}
	}
}

func TestTheLanesTakeTheWidthThereIs(t *testing.T) {
	for columns, want := range map[int]int{53: 49, 80: 76, 120: 115, 200: 196} {
		if got := lanesOf(t, drawWide(t, columns, false, 33, 34)); got[len(got)-1] != want {
			t.Errorf("%d columns: the lanes stand at %v, want the last at %d", columns, got, want)
		}
	}
}

func TestNoTextBreaksALane(t *testing.T) {
	for columns := 20; columns <= 130; columns++ {
		for _, seq := range []uint64{33, 1_796_051_484_515_944, math.MaxUint64 - 1} {
			out := drawWide(t, columns, false, seq, seq+1)
			lanes := lanesOf(t, out)
			for _, row := range rows(out) {
				from, to := arrow(row)
				for _, x := range lanes {
					crossed := from < x && x < to // the arrow's text may cover it
					if !crossed && (x >= len(row) || !strings.ContainsRune("│┃┊├┤", row[x])) {
						t.Errorf("%d columns, token %d: lane %d is broken: %s", columns, seq, x, string(row))
					}
				}
			}
		}
	}
}

func TestFrom53ColumnsOnAllIsReadable(t *testing.T) {
	for columns := 53; columns <= 200; columns++ {
		out := drawWide(t, columns, false, 33, 34)
		for _, want := range []string{"client A", "lock", "client B", "store", "33", "REFUSED: 33 is older than 34"} {
			if !strings.Contains(out, want) {
				t.Errorf("%d columns: the timeline lacks %q:\n%s", columns, want, out)
			}
		}
		if strings.Contains(out, "…") {
			t.Errorf("%d columns: a text is cut:\n%s", columns, out)
		}
	}
}

// A cut number keeps its end, where it differs from the next one.
func TestACutTokenKeepsItsEnd(t *testing.T) {
	out := drawWide(t, 53, false, 1_796_051_484_515_944, 1_796_051_484_515_945)
	if want := "…4515944 "; !strings.Contains(out, want) {
		t.Errorf("the timeline lacks %q:\n%s", want, out)
	}
}

// rows are the lines with a time and lanes.
func rows(out string) (rows [][]rune) {
	for line := range strings.Lines(out) {
		row := []rune(strings.TrimSuffix(line, "\n"))
		if len(row) > 7 && row[6] == 's' && row[3] == '.' {
			rows = append(rows, row)
		}
	}
	return rows
}

// arrow returns the first and the last column of the arrow in a row, or nothing
// that is between two columns.
func arrow(row []rune) (from, to int) {
	from, to = -1, -1
	for x, c := range row {
		if from < 0 && (c == '├' || c == '◂') {
			from, to = x, math.MaxInt // it may be cut off
		}
		if from >= 0 && (c == '┤' || c == '▸') {
			to = x
		}
	}
	return from, to
}

// lanesOf are the columns of the lanes, as the first row has them.
func lanesOf(t *testing.T, out string) (lanes []int) {
	t.Helper()
	for x, c := range rows(out)[0] {
		if c == '│' {
			lanes = append(lanes, x)
		}
	}
	if len(lanes) == 0 {
		t.Fatalf("no lanes:\n%s", out)
	}
	return lanes
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
	err := timeline.New(brokenWriter{}, timeline.DefaultColumns, false).Event(event.Event{Name: event.Started})
	if !errors.Is(err, errBroken) {
		t.Errorf("Event = %v, want %v", err, errBroken)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
