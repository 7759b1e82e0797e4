package fence

import (
	"errors"
	"fmt"
	"time"
)

// The reasons for which a token is refused. A guard returns them inside a
// *RejectedError; use errors.Is.
var (
	// ErrNoToken: Seq is 0, or the text is empty.
	ErrNoToken = errors.New("fence: no token")
	// ErrBadToken: the text is malformed, or a part is too long.
	ErrBadToken = errors.New("fence: bad token")
	// ErrLineage: the offered token and the mark belong to different
	// numberings, so neither is the later one. An operator decides.
	ErrLineage = errors.New("fence: token of another lineage")
	// ErrStale: a higher token was admitted before.
	ErrStale = errors.New("fence: stale token")
	// ErrCollision: another grant was given the same number; the first of them
	// to arrive keeps it.
	ErrCollision = errors.New("fence: two holders with one number")
	// ErrUnverified: the lock service did not confirm the token as the current
	// grant. See Verifier and UnverifiedError.
	ErrUnverified = errors.New("fence: token not verified")
)

// RejectedError is a guard's refusal of a token. It unwraps to one of the
// sentinels above.
type RejectedError struct {
	Resource string // the guarded resource
	Offered  Token  // the token that was refused
	Mark     Mark   // the highest token admitted, zero if none was
	Reason   error  // a sentinel of this package, or an error over one
}

// Unwrap returns e.Reason.
func (e *RejectedError) Unwrap() error { return e.Reason }

// Error names the resource, both numbers, both holders and when the higher one
// arrived, and what it most likely means.
func (e *RejectedError) Error() string {
	reason := e.Reason
	if reason == nil {
		reason = errors.New("fence: token refused")
	}
	unverified, isUnverified := errors.AsType[*UnverifiedError](reason)
	headline := reason.Error()
	if isUnverified {
		headline = unverified.headline() // the rest would name resource and token again
	}
	s := refusal(headline, e.Resource, e.Offered)
	if !e.Mark.IsZero() {
		s += "; the highest admitted is " + describe(e.Mark.Token)
		if at := e.Mark.RaisedAt; !at.IsZero() {
			s += ", raised " + at.UTC().Format(time.RFC3339Nano)
		}
	}
	if isUnverified {
		return s + unverified.rest()
	}
	if hint := e.hint(); hint != "" {
		s += "; " + hint
	}
	return s
}

func refusal(reason, resource string, t Token) string {
	return fmt.Sprintf("%s: resource %q refuses %s", reason, resource, describe(t))
}

func (e *RejectedError) hint() string {
	switch {
	case errors.Is(e.Reason, ErrStale) && e.Offered.Holder != "" && e.Offered.Holder == e.Mark.Holder:
		return "the same holder came back with a lower number: a holder id must be unique per grant"
	case errors.Is(e.Reason, ErrStale):
		return "its holder was superseded; if its grant is in truth the newer one, the numbering went back " +
			"(a lock service restored from a backup; for etcd restore with --bump-revision)"
	case errors.Is(e.Reason, ErrLineage):
		return "the two cannot be ordered: the numbering was started again, or the writer uses another lock; " +
			"an operator decides which one holds"
	case errors.Is(e.Reason, ErrCollision):
		return "the lock service gave one number to two grants (it lost a write, or was restored); " +
			"the first to arrive keeps it"
	case errors.Is(e.Reason, ErrNoToken):
		return "pass the token of the current lease, or fence.Number(n) for another lock client"
	}
	return ""
}

// describe cuts no part of a valid token: two of them may differ at their ends.
func describe(t Token) string {
	holder := "no holder id"
	if t.Holder != "" {
		holder = fmt.Sprintf("holder %q", shorten(t.Holder, MaxHolder))
	}
	lineage := "no lineage"
	if t.Lineage != "" {
		lineage = fmt.Sprintf("lineage %q", shorten(t.Lineage, MaxLineage))
	}
	return fmt.Sprintf("%d (%s, %s)", t.Seq, holder, lineage)
}
