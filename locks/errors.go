package locks

import (
	"context"
	"errors"
	"fmt"
)

// The kinds of failure. They come wrapped in an *Error; use errors.Is.
var (
	// ErrHeld: somebody else has the lock, or waits for it.
	ErrHeld = errors.New("locks: held by another")
	// ErrLost: the lease ran out, was revoked, or its entry is gone.
	ErrLost = errors.New("locks: lease lost")
	// ErrReleased: the lease was released by its holder or by Close.
	ErrReleased = errors.New("locks: lease released")
	// ErrUnreachable: the service gave no usable answer. Whether it carried
	// the request out is unknown; cleanup goes on in the background.
	ErrUnreachable = errors.New("locks: service unreachable")
	// ErrCancelled: the caller's context ended first.
	ErrCancelled = errors.New("locks: cancelled")
	// ErrClosed: the Locker was closed.
	ErrClosed = errors.New("locks: locker closed")
	// ErrBadName: the lock name is empty or too long.
	ErrBadName = errors.New("locks: bad lock name")
	// ErrBadOption: the service cannot keep what an option asks for.
	ErrBadOption = errors.New("locks: bad option")
	// ErrUnsupported: the server is too old, or its numbering is used up.
	ErrUnsupported = errors.New("locks: not supported by the service")
)

// Error is the failure of one operation on one lock.
type Error struct {
	Op   string // "acquire", "renew", "release", "hold", "close", "dial", ...
	Name string // the lock, empty if the operation concerns none
	Kind error  // a sentinel of this package
	Err  error  // what the service or the context said; may be nil
}

// Unwrap returns Kind and Err, so that errors.Is finds both.
func (e *Error) Unwrap() []error {
	var all []error
	if e.Kind != nil {
		all = append(all, e.Kind)
	}
	if e.Err != nil {
		all = append(all, e.Err)
	}
	return all
}

// Error names the kind, the operation, the lock and the reason.
func (e *Error) Error() string {
	s := "locks: failed"
	if e.Kind != nil {
		s = e.Kind.Error()
	}
	s += ": " + e.Op
	if e.Name != "" {
		s += fmt.Sprintf(" %q", e.Name)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Cancelled returns the error of an Acquire of name whose ctx ended: over
// ErrCancelled, ctx.Err(), the context's cause, and seen, which is what the
// adapter saw last: ErrHeld, an error over ErrUnreachable, or nil.
func Cancelled(ctx context.Context, name string, seen error) error {
	return cancelled(ctx, "acquire", name, seen)
}

// Unanswered returns why a Verify of the lock name got no answer, for
// fence.UnverifiedError.Err. err is what the adapter saw, over a sentinel of this
// package. If ctx, the caller's, has ended, the result is also over ErrCancelled,
// ctx.Err() and the context's cause.
func Unanswered(ctx context.Context, name string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return cancelled(ctx, "verify", name, err)
}

func cancelled(ctx context.Context, op, name string, seen error) error {
	err := whyEnded(ctx)
	if seen != nil {
		err = fmt.Errorf("%w (last seen: %w)", err, seen)
	}
	return &Error{Op: op, Name: name, Kind: ErrCancelled, Err: err}
}

// whyEnded returns an error over both ctx.Err() and the context's cause.
func whyEnded(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
