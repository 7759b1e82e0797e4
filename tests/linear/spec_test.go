package linear_test

import (
	"fmt"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

const (
	resources = 3
	keys      = 2
)

// Kinds of operations.
const (
	kindRaise   = "raise"
	kindPut     = "put"
	kindDelete  = "delete"
	kindUpdate  = "update"  // reads the key, then writes it
	kindFails   = "fails"   // the same, but the function returns an error
	kindPanics  = "panics"  // the same, but the function panics
	kindMove    = "move"    // reads and writes the key of two resources
	kindGet     = "get"     // reads the key
	kindHighest = "highest" // reads the mark
	kindView    = "view"    // reads the mark and every key of a resource
)

// Outcomes of operations.
const (
	done       = "done"
	refused    = "refused"
	own        = "own error"   // the function's; nothing is applied
	notApplied = "not applied" // another error that promises that nothing is
	unknown    = "unknown"     // applied or not, or applied later
)

// operation is a call. Values are written by one operation each, so that a read
// tells what it has seen.
type operation struct {
	Kind            string
	Resource, Other int // Other is the second resource of a move, a later one
	Key             int
	Token           fence.Token
	OtherToken      fence.Token
	Value           string
	Cancelled       bool // its context ends at some moment
}

func (o operation) writes() bool {
	return o.Kind != kindGet && o.Kind != kindHighest && o.Kind != kindView
}

// touches tells whether the operation reads or writes the resource.
func (o operation) touches(resource int) bool {
	return o.Resource == resource || o.Kind == kindMove && o.Other == resource
}

// result is what the caller was told, in full: a refusal with its reason, its
// resource and the mark that it names, reads with everything they returned.
type result struct {
	Outcome  string
	Reason   string
	Resource int
	Mark     fence.Token
	Values   [keys]string // "" is no value
	Other    string       // what a move read of its second resource
	Detail   string       // text of an error; decides nothing
}

// state is what a store promises to be: a mark and values for each resource.
type state [resources]struct {
	mark   fence.Token
	values [keys]string
}

// admit is the rule of package fence, written a second time so that a mistake in
// it shows. "" admits.
func admit(t, highest fence.Token) (reason string) {
	switch {
	case t.Seq == 0:
		return fence.ErrNoToken.Error()
	case highest.Seq == 0:
		return ""
	case t.Lineage != highest.Lineage:
		return fence.ErrLineage.Error()
	case t.Seq < highest.Seq:
		return fence.ErrStale.Error()
	case t.Seq == highest.Seq && t.Holder != highest.Holder:
		return fence.ErrCollision.Error()
	}
	return ""
}

// respond is the store as one caller at a time sees it: what an operation
// returns in a state, and the state that it leaves.
func respond(s state, o operation) (result, state) {
	before := s[o.Resource]
	r := result{Outcome: done}
	switch o.Kind {
	case kindGet:
		r.Values[o.Key] = before.values[o.Key]
		return r, s
	case kindHighest:
		r.Mark = before.mark
		return r, s
	case kindView:
		r.Mark, r.Values = before.mark, before.values
		return r, s
	}
	refuse := func(resource int, t fence.Token) bool {
		reason := admit(t, s[resource].mark)
		if reason != "" {
			r = result{Outcome: refused, Reason: reason, Resource: resource, Mark: s[resource].mark}
		}
		return reason != ""
	}
	if refuse(o.Resource, o.Token) || o.Kind == kindMove && refuse(o.Other, o.OtherToken) {
		return r, s
	}
	next := s
	next[o.Resource].mark = o.Token
	switch o.Kind {
	case kindPut:
		next[o.Resource].values[o.Key] = o.Value
	case kindDelete:
		next[o.Resource].values[o.Key] = ""
	case kindUpdate:
		r.Values[o.Key] = before.values[o.Key]
		next[o.Resource].values[o.Key] = o.Value
	case kindMove:
		r.Values[o.Key], r.Other = before.values[o.Key], s[o.Other].values[o.Key]
		next[o.Other].mark = o.OtherToken
		next[o.Resource].values[o.Key] = o.Value
		next[o.Other].values[o.Key] = o.Value
	case kindPanics:
		return result{Outcome: own}, s
	case kindFails:
		r.Outcome = own
		r.Values[o.Key] = before.values[o.Key]
		return r, s
	}
	return r, next
}

func nameOf(prefix string, n int) string { return fmt.Sprint(prefix, n) }
