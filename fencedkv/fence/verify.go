package fence

import (
	"context"
	"errors"
)

// Verifier asks the lock service whether a token is its current grant. It
// closes what order alone cannot: a forged number, a mark that a restored
// backup rolled back, a grant that the service no longer knows. Every Locker of
// this project is one; fencedkv.Options.Verifiers takes them.
//
// # Implementing
//
// Verify compares Seq and Holder with the current grant of the lock that is
// named like resource, by a read that is at least as new as the call
// (linearizable, or from the primary). It returns nil if they are equal. A
// waiter's number is not a grant, nor is that of a lease that was released or
// has run out. Otherwise it returns an *UnverifiedError, whose Reason is
//
//	ErrNoVerifier   t.Lineage is not one of this service's numberings of the
//	                lock, a bare number for example. If the text of the lineage
//	                tells, nothing is sent: a guard with several verifiers finds
//	                the right one by this answer.
//	ErrNotGranted   the lock is free, or another grant has it: Current
//	ErrNoAnswer     the service could not be asked, with the cause in Err
//
// An error of another kind counts as ErrNoAnswer. Verify must be safe for
// concurrent use and must return soon after ctx ends. It changes nothing at the
// service.
type Verifier interface {
	Verify(ctx context.Context, resource string, t Token) error
}

// The reasons for which a token is not verified. They come inside an
// *UnverifiedError; use errors.Is.
var (
	// ErrNoVerifier: no verifier knows the token's lineage.
	ErrNoVerifier = errors.New("fence: no verifier knows the lineage")
	// ErrNotGranted: the lock service says that another grant has the lock, or
	// none.
	ErrNotGranted = errors.New("fence: not the current grant")
	// ErrNoAnswer: the lock service could not be asked. The token may be good.
	ErrNoAnswer = errors.New("fence: the lock service did not answer")
)

// UnverifiedError is the answer of a Verifier that did not confirm a token. It
// unwraps to ErrUnverified, Reason and Err.
//
// A guard returns it as the Reason of a *RejectedError, so that its callers find
// every refusal with errors.AsType[*RejectedError], and this one beneath it.
type UnverifiedError struct {
	Resource string // the guarded resource, and the lock
	Offered  Token  // the token that was asked about
	Reason   error  // ErrNoVerifier, ErrNotGranted or ErrNoAnswer
	Current  Token  // what has the lock, with ErrNotGranted; zero if nothing has it
	Err      error  // the details, such as an error over locks.ErrUnreachable; may be nil
}

// Unwrap returns ErrUnverified, e.Reason and e.Err.
func (e *UnverifiedError) Unwrap() []error {
	all := []error{ErrUnverified}
	if e.Reason != nil {
		all = append(all, e.Reason)
	}
	if e.Err != nil {
		all = append(all, e.Err)
	}
	return all
}

// Error names the resource, the token, the reason and what to do.
func (e *UnverifiedError) Error() string {
	return refusal(e.headline(), e.Resource, e.Offered) + e.rest()
}

func (e *UnverifiedError) headline() string {
	s := ErrUnverified.Error()
	if e.Reason != nil {
		s += ": " + e.Reason.Error()
	}
	return s
}

// rest is what follows resource and token.
func (e *UnverifiedError) rest() string {
	s := ""
	if errors.Is(e.Reason, ErrNotGranted) {
		s = "; the lock is free"
		if !e.Current.IsZero() {
			s = "; the lock is held by " + describe(e.Current)
		}
	}
	if e.Err != nil {
		s += "; " + e.Err.Error()
	}
	switch {
	case errors.Is(e.Reason, ErrNoVerifier) && e.Offered.Lineage == "":
		s += "; a bare number cannot be verified: use the token of a lease"
	case errors.Is(e.Reason, ErrNoVerifier):
		s += "; give the guard the Locker that grants this lineage as a verifier, or acquire the lock of the same name from one that it has"
	case errors.Is(e.Reason, ErrNotGranted):
		s += "; its lease has ended, or the lock service has lost it or never granted it: acquire the lock anew"
	case errors.Is(e.Reason, ErrNoAnswer):
		s += "; nothing is known against the token: try again when the service answers"
	}
	return s
}
