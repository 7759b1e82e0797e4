package timeline

import (
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
)

// verdict says what an act has come to.
func (t *Timeline) verdict(e event.Event) {
	t.line("")
	style := t.p.good
	if e.Actual != e.Expected {
		style = t.p.bad
	}
	t.say(style, "Balance: should be %d, is %d.", e.Expected, e.Actual)
	switch {
	case e.LostUpdates > 0 && e.Act == event.Unfenced:
		t.say(t.p.strong, "Lost: client B was told \"ok\", and then client A's late write wiped B's withdrawal out.")
	case e.LostUpdates > 0 || e.Actual != e.Expected:
		t.say(t.p.bad, "Lost all the same: the store took a write that it should have refused.")
	case !t.refused.Offered.IsZero():
		t.say(t.p.strong, "Safe: the store had seen token %s, so it refused the late write with token %s. "+
			"Client A started again and lost nothing.", number(t.refused.Highest), number(t.refused.Offered))
	default:
		t.say(t.p.strong, "Nothing was lost, because nobody wrote late.")
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
