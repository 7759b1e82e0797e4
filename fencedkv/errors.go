package fencedkv

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// What a store reports besides a *fence.RejectedError and the errors of
// contexts and functions. Use errors.Is. Every error but ErrUnknownOutcome means
// that the call has written nothing.
var (
	// ErrNotFound: the resource has no such key.
	ErrNotFound = engine.ErrNotFound
	// ErrClosed: Close has been called.
	ErrClosed = errors.New("fencedkv: store closed")
	// ErrInUse: another process has the file open, or this one has. See
	// InUseError.
	ErrInUse = boltfile.ErrInUse
	// ErrCorrupt: the file is damaged. See CorruptError.
	ErrCorrupt = boltfile.ErrCorrupt
	// ErrFormat: the file is not a store, or one of a newer version.
	ErrFormat = boltfile.ErrFormat
	// ErrMoved: the file was moved, removed or replaced while it was open, so that
	// whoever opens its path finds another one. This call has written nothing, and
	// no call writes until the file is back; reads go on. Close the store and open
	// it by the file's new name.
	ErrMoved = boltfile.ErrMoved
	// ErrTooLarge: a limit was passed. See LimitError.
	ErrTooLarge = engine.ErrTooLarge
	// ErrArgument: an argument cannot be right. See ArgumentError.
	ErrArgument = errors.New("fencedkv: bad argument")
	// ErrFailed: this commit or an earlier one failed, so that what the disk
	// holds is not known; this call has written nothing. Every call fails until
	// the store is closed and opened anew.
	ErrFailed = engine.ErrFailed
	// ErrNested: the store was called from within a function that it runs,
	// which would wait for itself. Use the function's transaction instead.
	ErrNested = errors.New("fencedkv: call from within a function of the same store")
	// ErrUnknownOutcome: the write may or may not be applied. Raise, Put and
	// Delete may be repeated with the same token and value while no newer write
	// of one's own came between; Update may not.
	ErrUnknownOutcome = engine.ErrUnknownOutcome
	// ErrTxDone: a transaction was used after its function had returned, or a
	// Held after the function of Exclusive had.
	ErrTxDone = engine.ErrTxDone
	// ErrNotClaimed: the function of Store.Update asked for a resource that is
	// not among the claims.
	ErrNotClaimed = engine.ErrNotClaimed
)

// LimitError is a limit that was passed. It unwraps to ErrTooLarge.
type LimitError struct {
	What  string // "resource name", "key", "value" or "transaction"
	Size  int    // in bytes
	Limit int    // in bytes
}

// Unwrap returns ErrTooLarge.
func (e *LimitError) Unwrap() error { return ErrTooLarge }

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: the %s has %d bytes, the limit is %d", ErrTooLarge, e.What, e.Size, e.Limit)
}

// ArgumentError is an argument that cannot be right. It unwraps to ErrArgument.
type ArgumentError struct {
	Argument string // "key", "function", "claims", ...
	Problem  string // what is wrong with it and what would be right
}

// Unwrap returns ErrArgument.
func (e *ArgumentError) Unwrap() error { return ErrArgument }

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("%v: the %s %s", ErrArgument, e.Argument, e.Problem)
}

var (
	errNoFunction = &ArgumentError{Argument: "function", Problem: "is nil"}
	errNilContext = &ArgumentError{Argument: "context", Problem: "is nil; use context.Background"}
	errNotOpen    = &ArgumentError{Argument: "store", Problem: "is not open; use Open"}
)

// isNil reports whether v is nil or a nil pointer, which a constructor returns with
// an error.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}

// CorruptError says what is damaged. It unwraps to ErrCorrupt and Err.
type CorruptError struct {
	Path     string
	Kind     string // "file", "header", "mark", "value" or "digest"
	Resource string // whose record it is; empty if it is none of a resource
	Key      []byte // of a value
	Err      error  // the details
}

// Unwrap returns ErrCorrupt and e.Err.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }

func (e *CorruptError) Error() string { return details(e.Err, ErrCorrupt, e.Path) }

// InUseError says who has the file. It unwraps to ErrInUse.
type InUseError struct {
	Path        string
	ThisProcess bool          // this process has it open, which is never waited for
	PID         int           // the other process, 0 if the platform does not tell
	Process     string        // its name, empty if not known
	Waited      time.Duration // see Options.Timeout
	Err         error         // the details
}

// Unwrap returns ErrInUse and e.Err.
func (e *InUseError) Unwrap() []error { return []error{ErrInUse, e.Err} }

func (e *InUseError) Error() string { return details(e.Err, ErrInUse, e.Path) }

// details is the text of an error that a test of the caller may have made, and
// then without err.
func details(err, sentinel error, path string) string {
	if err == nil {
		return sentinel.Error() + ": " + path
	}
	return err.Error()
}

// public turns the errors of the internal packages into those above.
func public(err error) error {
	switch err.(type) { //nolint:errorlint // the common ones, without a search
	case nil, *fence.RejectedError:
		return err
	}
	if errors.Is(err, ErrFailed) || errors.Is(err, ErrUnknownOutcome) {
		return err // whatever the cause, that is what the caller must know
	}
	if d, ok := errors.AsType[*engine.Damage](err); ok {
		return &CorruptError{Path: d.Path, Kind: d.Kind, Resource: d.Resource, Key: d.Key, Err: err}
	}
	if c, ok := errors.AsType[*boltfile.CorruptError](err); ok {
		return &CorruptError{Path: c.Path, Kind: "file", Err: err}
	}
	if u, ok := errors.AsType[*boltfile.InUseError](err); ok {
		return &InUseError{
			Path: u.Path, ThisProcess: u.ThisProcess, PID: u.PID, Process: u.Process, Waited: u.Waited, Err: err,
		}
	}
	if s, ok := errors.AsType[*engine.SizeError](err); ok {
		return &LimitError{What: s.What, Size: s.Size, Limit: s.Limit}
	}
	return err
}
