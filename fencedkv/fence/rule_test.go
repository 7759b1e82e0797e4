package fence_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

var raisedAt = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func mark(t fence.Token) fence.Mark { return fence.Mark{Token: t, RaisedAt: raisedAt} }

// TestAdmitDecidesEveryRow has one row, or more, for each row of the rule.
func TestAdmitDecidesEveryRow(t *testing.T) {
	named := func(seq uint64, lineage, holder string) fence.Token {
		return fence.Token{Seq: seq, Lineage: lineage, Holder: holder}
	}
	const most = math.MaxUint64
	tests := []struct {
		name    string
		offered fence.Token
		highest fence.Mark
		raise   bool
		want    error
	}{
		{"no token on nothing", fence.Token{}, fence.Mark{}, false, fence.ErrNoToken},
		{"no token on a mark", fence.Token{}, mark(fence.Number(1)), false, fence.ErrNoToken},
		{"no number but a lineage", named(0, "l", "h"), mark(named(1, "l", "h")), false, fence.ErrNoToken},
		{"lineage at its limit", named(1, strings.Repeat("l", 256), ""), fence.Mark{}, true, nil},
		{"lineage over its limit", named(1, strings.Repeat("l", 257), ""), fence.Mark{}, false, fence.ErrBadToken},
		{"holder at its limit", named(1, "", strings.Repeat("h", 128)), fence.Mark{}, true, nil},
		{"holder over its limit", named(1, "", strings.Repeat("h", 129)), fence.Mark{}, false, fence.ErrBadToken},

		{"first bare number", fence.Number(1), fence.Mark{}, true, nil},
		{"first named token", named(7, "l", "h"), fence.Mark{}, true, nil},
		{"first and largest", fence.Number(most), fence.Mark{}, true, nil},

		{"other lineage, higher", named(9, "m", "h"), mark(named(1, "l", "h")), false, fence.ErrLineage},
		{"other lineage, equal", named(1, "m", "h"), mark(named(1, "l", "h")), false, fence.ErrLineage},
		{"other lineage, lower", named(1, "m", "h"), mark(named(9, "l", "h")), false, fence.ErrLineage},
		{"bare number on a named lineage", fence.Number(9), mark(named(1, "l", "")), false, fence.ErrLineage},
		{"named lineage on a bare number", named(9, "l", ""), mark(fence.Number(1)), false, fence.ErrLineage},

		{"lower by one", named(33, "l", "a"), mark(named(34, "l", "b")), false, fence.ErrStale},
		{"lower of the same holder", named(33, "l", "a"), mark(named(34, "l", "a")), false, fence.ErrStale},
		{"lower bare number", fence.Number(1), mark(fence.Number(most)), false, fence.ErrStale},

		{"equal and the same holder", named(34, "l", "a"), mark(named(34, "l", "a")), false, nil},
		{"equal bare number", fence.Number(34), mark(fence.Number(34)), false, nil},
		{"equal and another holder", named(34, "l", "a"), mark(named(34, "l", "b")), false, fence.ErrCollision},
		{"equal, no holder against one", named(34, "l", ""), mark(named(34, "l", "b")), false, fence.ErrCollision},
		{"equal, a holder against none", named(34, "l", "a"), mark(named(34, "l", "")), false, fence.ErrCollision},

		{"higher by one", named(35, "l", "b"), mark(named(34, "l", "a")), true, nil},
		{"higher of the same holder", named(35, "l", "a"), mark(named(34, "l", "a")), true, nil},
		{"1e14+1 over 1e14", fence.Number(1e14 + 1), mark(fence.Number(1e14)), true, nil},
		{"2^53+1 over 2^53", fence.Number(1<<53 + 1), mark(fence.Number(1 << 53)), true, nil},
		{"2^53 under 2^53+1", fence.Number(1 << 53), mark(fence.Number(1<<53 + 1)), false, fence.ErrStale},
		{"largest over the one before", fence.Number(most), mark(fence.Number(most - 1)), true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raise, err := fence.Admit("r", tt.offered, tt.highest)
			if raise != tt.raise || !errors.Is(err, tt.want) {
				t.Fatalf("Admit(%v, highest %v) = %v, %v; want %v, %v", tt.offered, tt.highest, raise, err, tt.raise, tt.want)
			}
			if tt.want == nil {
				return
			}
			var rejected *fence.RejectedError
			if !errors.As(err, &rejected) {
				t.Fatalf("the refusal is a %T, want a *fence.RejectedError", err)
			}
			if rejected.Resource != "r" || rejected.Offered != tt.offered || rejected.Mark != tt.highest {
				t.Errorf("the refusal says %+v, want the resource, the offered token and the mark", rejected)
			}
		})
	}
}

// TestAdmitLooksAtNoClock: RaisedAt informs and decides nothing.
func TestAdmitLooksAtNoClock(t *testing.T) {
	for _, at := range []time.Time{{}, time.Now().Add(1000 * time.Hour), time.Unix(0, 0)} {
		highest := fence.Mark{Token: fence.Number(5), RaisedAt: at}
		for seq, want := range map[uint64]error{4: fence.ErrStale, 5: nil, 6: nil} {
			if _, err := fence.Admit("r", fence.Number(seq), highest); !errors.Is(err, want) {
				t.Errorf("raised at %v: Admit(%d) = %v, want %v", at, seq, err, want)
			}
		}
	}
}

func TestRefusalTellsTheStoryToThePersonPaged(t *testing.T) {
	a := fence.Token{Seq: 33, Lineage: "redis:p:n", Holder: "web-3.4711.A"}
	b := fence.Token{Seq: 34, Lineage: "redis:p:n", Holder: "web-4.4712.B"}
	other := fence.Token{Seq: 99, Lineage: "redis:q:n", Holder: "web-5.1.C"}
	tests := []struct {
		name    string
		offered fence.Token
		highest fence.Token
		want    []string
	}{
		{"stale", a, b, []string{"stale", `"accounts/42"`, "33", "34", a.Holder, b.Holder, "2026-01-02T03:04:05", "superseded", "--bump-revision"}},
		{"stale by its own successor", fence.Token{Seq: 33, Holder: "x"}, fence.Token{Seq: 34, Holder: "x"}, []string{"same holder", "unique per grant"}},
		{"collision", fence.Token{Seq: 34, Lineage: b.Lineage, Holder: "z"}, b, []string{"one number", `"z"`, b.Holder}},
		{"lineage", other, b, []string{"lineage", "redis:p:n", "redis:q:n", "operator"}},
		{"none", fence.Token{}, b, []string{"no token", "fence.Number"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := fence.Admit("accounts/42", tt.offered, mark(tt.highest))
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the text %q does not say %q", err, want)
				}
			}
		})
	}
}

// TestRefusalTellsLongLineagesApart: they may differ in their last byte, and what
// is longer than any token may be is cut.
func TestRefusalTellsLongLineagesApart(t *testing.T) {
	named := func(last string) fence.Token {
		return fence.Token{Seq: 1, Lineage: strings.Repeat("l", 255) + last, Holder: strings.Repeat("h", 127) + last}
	}
	_, err := fence.Admit("r", named("1"), mark(named("2")))
	for _, want := range []string{"l1", "l2", "h1", "h2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the text %q does not say %q", err, want)
		}
	}
	_, err = fence.Admit("r", fence.Token{Seq: 1, Lineage: strings.Repeat("l", 1<<16)}, fence.Mark{})
	if len(err.Error()) > 600 {
		t.Errorf("the text has %d bytes, want a short one", len(err.Error()))
	}
}

// TestRefusalOfABareNumberAccusesNoHolder: two clients without an id are not one
// client that came back.
func TestRefusalOfABareNumberAccusesNoHolder(t *testing.T) {
	_, err := fence.Admit("r", fence.Number(33), mark(fence.Number(34)))
	if strings.Contains(err.Error(), "same holder") {
		t.Errorf("the text %q speaks of the same holder", err)
	}
}

func TestRefusalSaysTheTimeInUTC(t *testing.T) {
	highest := fence.Mark{Token: fence.Number(34), RaisedAt: raisedAt.In(time.FixedZone("", 3600))}
	if _, err := fence.Admit("r", fence.Number(33), highest); !strings.Contains(err.Error(), "2026-01-02T03:04:05") {
		t.Errorf("the text %q does not say the time in UTC", err)
	}
}

func TestNothingIsSaidOfAnUnknownTime(t *testing.T) {
	highest := fence.Mark{Token: fence.Number(34)}
	_, err := fence.Admit("r", fence.Number(33), highest)
	for _, text := range []string{err.Error(), highest.String()} {
		if strings.Contains(text, "0001") || !strings.Contains(text, "34") {
			t.Errorf("the text %q names a time that nobody noted, or not the number", text)
		}
	}
}

func TestRefusalWithoutReasonStillPrints(t *testing.T) {
	if got := (&fence.RejectedError{Resource: "r"}).Error(); !strings.Contains(got, `"r"`) {
		t.Errorf("text %q, want the resource in it", got)
	}
}
