package timeline

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Timeline is a Sink that draws. Each line is written with one Write.
type Timeline struct {
	w       io.Writer
	err     error // the first error of w
	p       *palette
	holder  lane // who holds the lock; laneLock if nobody does
	stopped bool // client A is stopped
	refused event.Event
}

// New returns a Timeline on w, with or without colour.
func New(w io.Writer, colour bool) *Timeline {
	return &Timeline{w: w, p: newPalette(colour), holder: laneLock}
}

// Event draws e.
func (t *Timeline) Event(e event.Event) error {
	switch e.Name {
	case event.Started:
		t.say(t.p.strong, "A stale writer, and what stops it")
		t.say(t.p.faint, "Lock service: %s, lease time: %v", e.Lock, ms(e.TTLMS))
	case event.ActStarted:
		t.open(e)
	case event.ActEnded:
		t.verdict(e)
	default:
		t.draw(e)
	}
	return t.err
}

// Summary says what both acts have shown.
func (t *Timeline) Summary(s event.Summary) error {
	style := t.p.bad
	if s.Shown {
		style = t.p.good
	}
	t.line("")
	t.say(style, "The same pause cost %s without fencing and %s with it.",
		updates(s.LostUpdates.Unfenced), updates(s.LostUpdates.Fenced))
	return t.err
}

func updates(n int) string {
	switch n {
	case 0:
		return "no update"
	case 1:
		return "one update"
	}
	return fmt.Sprintf("%d updates", n)
}

// open writes the title of an act and the heads of the lanes.
func (t *Timeline) open(e event.Event) {
	t.holder, t.stopped, t.refused = laneLock, false, event.Event{}
	t.line("")
	if e.Act == event.Fenced {
		t.say(t.p.strong, "Act 2, fenced: the same lock, and a store that looks at the token")
	} else {
		t.say(t.p.strong, "Act 1, unfenced: a lock, and a store that takes whatever comes")
	}
	t.line("")
	head := newRow()
	for l := range lanes {
		head.center(columns[l], titles[l], t.p.lane(l))
	}
	t.line(head.String())
	t.row(e.AtMS, func(r *row) { r.note(laneStore, fmt.Sprintf("balance %d", *e.Balance), t.p.store) })
}

// draw adds the rows of one event.
func (t *Timeline) draw(e event.Event) {
	who, style := laneA, t.p.a
	if e.Client == event.ClientB {
		who, style = laneB, t.p.b
	}
	arrow := func(from, to lane, style *color.Color, labels ...string) {
		t.row(e.AtMS, func(r *row) { r.arrow(from, to, fit(from, to, labels), style) })
	}
	note := func(l lane, style *color.Color, format string, args ...any) {
		t.row(e.AtMS, func(r *row) { r.note(l, fmt.Sprintf(format, args...), style) })
	}

	switch e.Name {
	case event.Acquiring:
		arrow(who, laneLock, style, "acquire")
	case event.Acquired:
		arrow(laneLock, who, t.p.lock, "token "+number(e.Token), number(e.Token))
		t.holder = who
	case event.Raised:
		arrow(who, laneStore, style, "raise to "+number(e.Token), "raise")
	case event.Read:
		arrow(laneStore, who, t.p.store, fmt.Sprintf("balance %d", *e.Balance))
	case event.LeaseChecked:
		if *e.Valid {
			note(who, t.p.good, "✓ lease is good")
		} else {
			note(who, t.p.bad, "✗ lease is over")
		}
	case event.AboutToWrite:
		note(who, style, "about to write %d", *e.Balance)
	case event.Stopped:
		t.stopped = true
		how := "STOPPED (SIGSTOP)"
		if e.How != event.HowSignal {
			how = "BLOCKED"
		}
		note(who, t.p.bad, "■ %s", how)
	case event.LeaseExpired:
		t.holder = laneLock
		note(laneLock, t.p.lock, "%s's lease ran out", e.Client)
	case event.Continued:
		t.stopped = false
		how := "GOES ON (SIGCONT)"
		if e.How != event.HowSignal {
			how = "GOES ON"
		}
		note(who, style, "► %s", how)
	case event.Writing:
		plain := fmt.Sprintf("write %d", *e.Balance)
		if e.Token.IsZero() {
			arrow(who, laneStore, style, plain)
		} else {
			arrow(who, laneStore, style, plain+" with "+number(e.Token), plain)
		}
	case event.Written:
		arrow(laneStore, who, t.p.store, fmt.Sprintf("ok, balance %d", *e.Balance))
	case event.Rejected:
		t.refused = e
		older, newer := number(e.Offered), number(e.Highest)
		arrow(laneStore, who, t.p.bad,
			"REFUSED: "+older+" is older than "+newer, "REFUSED: "+older+" < "+newer, "REFUSED")
	case event.LeaseLost:
		note(who, t.p.bad, "✗ lease was lost")
	case event.Retrying:
		note(who, style, "starts again")
	case event.Released:
		t.holder = laneLock
		arrow(who, laneLock, style, "release")
	}
}

// row writes one line with its time, the lanes, and what f adds.
func (t *Timeline) row(atMS int64, f func(*row)) {
	r := newRow()
	r.time(float64(atMS)/1000, t.p.faint)
	for l := range lanes {
		sign, style := "│", t.p.lane(l)
		switch {
		case l == laneA && t.stopped:
			sign, style = "┊", t.p.bad
		case l == laneLock && t.holder != laneLock:
			sign, style = "┃", t.p.lane(t.holder)
		}
		r.put(columns[l], sign, style)
	}
	f(r)
	t.line(r.String())
}

func (t *Timeline) line(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s+"\n")
	}
}

// say writes a text, broken into lines.
func (t *Timeline) say(style *color.Color, format string, args ...any) {
	for _, line := range wrap(fmt.Sprintf(format, args...)) {
		t.line(style.Sprint(line))
	}
}

func wrap(text string) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// fit returns the first label that an arrow has room for, or a cut one.
func fit(from, to lane, labels []string) string {
	room := max(columns[from]-columns[to], columns[to]-columns[from]) - 5
	for _, label := range labels {
		if utf8.RuneCountInString(label) <= room {
			return label
		}
	}
	last := []rune(labels[len(labels)-1])
	return string(last[:room-1]) + "…"
}

func number(t fence.Token) string { return fmt.Sprint(t.Seq) }
