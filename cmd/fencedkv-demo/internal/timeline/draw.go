package timeline

import (
	"fmt"

	"github.com/fatih/color"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// draw adds the row of one event. Where there are several texts, the first that
// has room is drawn.
func (t *Timeline) draw(e event.Event) {
	who, style := laneA, t.p.a
	if e.Client == event.ClientB {
		who, style = laneB, t.p.b
	}
	arrow := func(from, to lane, style *color.Color, labels ...string) {
		label := fit(t.layout.arrowRoom(from, to), labels...)
		t.row(e.AtMS, func(r *row) { r.arrow(from, to, label, style) })
	}
	note := func(l lane, style *color.Color, texts ...string) {
		text := fit(t.layout.noteRoom(), texts...)
		t.row(e.AtMS, func(r *row) { r.note(l, text, style) })
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
		arrow(laneStore, who, t.p.store, fmt.Sprintf("balance %d", *e.Balance), fmt.Sprint(*e.Balance))
	case event.LeaseChecked:
		if *e.Valid {
			note(who, t.p.good, "✓ lease is good", "✓ lease ok")
		} else {
			note(who, t.p.bad, "✗ lease is over", "✗ expired")
		}
	case event.AboutToWrite:
		note(who, style, fmt.Sprintf("about to write %d", *e.Balance), fmt.Sprintf("next: %d", *e.Balance))
	case event.Stopped:
		t.stopped = true
		if e.How == event.HowSignal {
			note(who, t.p.bad, "■ STOPPED (SIGSTOP)", "■ STOPPED")
		} else {
			note(who, t.p.bad, "■ BLOCKED")
		}
	case event.LeaseExpired:
		t.holder = laneLock
		note(laneLock, t.p.lock, e.Client+"'s lease ran out", e.Client+" expired")
	case event.Continued:
		t.stopped = false
		if e.How == event.HowSignal {
			note(who, style, "► GOES ON (SIGCONT)", "► GOES ON")
		} else {
			note(who, style, "► GOES ON")
		}
	case event.Writing:
		plain := fmt.Sprintf("write %d", *e.Balance)
		if e.Token.IsZero() {
			arrow(who, laneStore, style, plain)
		} else {
			arrow(who, laneStore, style, plain+" with "+number(e.Token), plain)
		}
	case event.Written:
		arrow(laneStore, who, t.p.store, fmt.Sprintf("ok, balance %d", *e.Balance), fmt.Sprintf("ok, %d", *e.Balance))
	case event.Rejected:
		t.refused = e
		older, newer := number(e.Offered), number(e.Highest)
		arrow(laneStore, who, t.p.bad,
			"REFUSED: "+older+" is older than "+newer, "REFUSED: "+older+" < "+newer, "REFUSED")
	case event.LeaseLost:
		note(who, t.p.bad, "✗ lease was lost", "✗ lost")
	case event.Retrying:
		note(who, style, "starts again", "again")
	case event.Released:
		t.holder = laneLock
		arrow(who, laneLock, style, "release")
	}
}

func number(t fence.Token) string { return fmt.Sprint(t.Seq) }
