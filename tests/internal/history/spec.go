package history

import (
	"fmt"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// The size of the store that is looked at.
const (
	Resources = 3
	Keys      = 2
)

// Kinds of operations.
const (
	Raise   = "raise"
	Put     = "put"
	Delete  = "delete"
	Update  = "update"  // reads the key, then writes it
	Fails   = "fails"   // the same, but the function returns an error
	Panics  = "panics"  // the same, but the function panics
	Move    = "move"    // reads and writes the key of two resources
	Get     = "get"     // reads the key
	Highest = "highest" // reads the mark
	View    = "view"    // reads the mark and every key of a resource
)

// Outcomes of operations.
const (
	Done       = "done"
	Refused    = "refused"
	Own        = "own error"   // the function's; nothing is applied
	NotApplied = "not applied" // another error that promises that nothing is
	Unknown    = "unknown"     // applied or not, or applied later
)

// Operation is a call. Values are written by one operation each, so that a read
// tells what it has seen.
type Operation struct {
	Kind            string
	Resource, Other int // Other is the second resource of a move, a later one
	Key             int
	Token           fence.Token
	OtherToken      fence.Token
	Value           string
	Cancelled       bool // its context ends at some moment
}

// Writes tells whether the operation needs a token.
func (o Operation) Writes() bool {
	return o.Kind != Get && o.Kind != Highest && o.Kind != View
}

// Touches tells whether the operation reads or writes the resource.
func (o Operation) Touches(resource int) bool {
	return o.Resource == resource || o.Kind == Move && o.Other == resource
}

// Result is what the caller was told, in full: a refusal with its reason, its
// resource and the mark that it names, reads with everything they returned.
type Result struct {
	Outcome  string
	Reason   string
	Resource int
	Mark     fence.Token
	Values   [Keys]string // "" is no value
	Other    string       // what a move read of its second resource
	Detail   string       // text of an error; decides nothing
}

// State is what a store promises to be: a mark and values for each resource.
type State [Resources]struct {
	Mark   fence.Token
	Values [Keys]string
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

// Respond is the store as one caller at a time sees it: what an operation
// returns in a state, and the state that it leaves.
func Respond(s State, o Operation) (Result, State) {
	before := s[o.Resource]
	r := Result{Outcome: Done}
	switch o.Kind {
	case Get:
		r.Values[o.Key] = before.Values[o.Key]
		return r, s
	case Highest:
		r.Mark = before.Mark
		return r, s
	case View:
		r.Mark, r.Values = before.Mark, before.Values
		return r, s
	}
	refuse := func(resource int, t fence.Token) bool {
		reason := admit(t, s[resource].Mark)
		if reason != "" {
			r = Result{Outcome: Refused, Reason: reason, Resource: resource, Mark: s[resource].Mark}
		}
		return reason != ""
	}
	if refuse(o.Resource, o.Token) || o.Kind == Move && refuse(o.Other, o.OtherToken) {
		return r, s
	}
	next := s
	next[o.Resource].Mark = o.Token
	switch o.Kind {
	case Put:
		next[o.Resource].Values[o.Key] = o.Value
	case Delete:
		next[o.Resource].Values[o.Key] = ""
	case Update:
		r.Values[o.Key] = before.Values[o.Key]
		next[o.Resource].Values[o.Key] = o.Value
	case Move:
		r.Values[o.Key], r.Other = before.Values[o.Key], s[o.Other].Values[o.Key]
		next[o.Other].Mark = o.OtherToken
		next[o.Resource].Values[o.Key] = o.Value
		next[o.Other].Values[o.Key] = o.Value
	case Panics:
		return Result{Outcome: Own}, s
	case Fails:
		r.Outcome = Own
		r.Values[o.Key] = before.Values[o.Key]
		return r, s
	}
	return r, next
}

// NameOf is the name of a resource or key.
func NameOf(prefix string, n int) string { return fmt.Sprint(prefix, n) }
