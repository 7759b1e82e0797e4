package timeline

import (
	"fmt"
	"io"

	"github.com/fatih/color"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
)

// Timeline is a Sink that draws. Each line is written with one Write.
type Timeline struct {
	w       io.Writer
	err     error // the first error of w
	p       *palette
	layout  layout
	holder  lane // who holds the lock; laneLock if nobody does
	stopped bool // client A is stopped
	refused event.Event
}

// New returns a Timeline on w, for a terminal of so many columns, with or without
// colour.
func New(w io.Writer, columns int, colour bool) *Timeline {
	return &Timeline{w: w, p: newPalette(colour), layout: newLayout(columns), holder: laneLock}
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
	head := newRow(t.layout)
	for l := range lanes {
		head.center(t.layout.columns[l], titles[l], t.p.lane(l))
	}
	t.line(head.String())
	balance := fit(t.layout.noteRoom(), fmt.Sprintf("balance %d", *e.Balance), fmt.Sprint(*e.Balance))
	t.row(e.AtMS, func(r *row) { r.note(laneStore, balance, t.p.store) })
}

// row writes one line with its time, the lanes, and what f adds.
func (t *Timeline) row(atMS int64, f func(*row)) {
	r := newRow(t.layout)
	r.time(float64(atMS)/1000, t.p.faint)
	for l := range lanes {
		sign, style := "│", t.p.lane(l)
		switch {
		case l == laneA && t.stopped:
			sign, style = "┊", t.p.bad
		case l == laneLock && t.holder != laneLock:
			sign, style = "┃", t.p.lane(t.holder)
		}
		r.put(t.layout.columns[l], sign, style)
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
	for _, line := range wrap(fmt.Sprintf(format, args...), t.layout.width) {
		t.line(style.Sprint(line))
	}
}
