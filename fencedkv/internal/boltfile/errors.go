package boltfile

import (
	"errors"
	"fmt"
	"time"
)

// What can be wrong with a file. Open returns the first three inside the struct
// errors below; use errors.Is.
var (
	// ErrInUse: the file is open elsewhere, in another process or in this one.
	// See InUseError.
	ErrInUse = errors.New("fencedkv: file in use")
	// ErrCorrupt: the file is damaged. See CorruptError.
	ErrCorrupt = errors.New("fencedkv: file corrupt")
	// ErrFormat: the file is no bbolt file, or of a kind that is not read here.
	// See FormatError.
	ErrFormat = errors.New("fencedkv: file format not supported")
	// ErrMoved: the path no longer names the file that is open. Nothing is
	// written then; what was read before and is read now is of the open file.
	ErrMoved = errors.New("fencedkv: file moved")
)

// InUseError says who has the file. It unwraps to ErrInUse.
type InUseError struct {
	Path        string        // as given to Open
	ThisProcess bool          // opened by this process; never waited for
	OpenAs      string        // the path this process opened it under; "" if by other means than Open
	PID         int           // the other process, 0 if the platform does not tell
	Process     string        // its name, "" if not known
	Waited      time.Duration // how long Open waited
}

// Unwrap returns ErrInUse.
func (e *InUseError) Unwrap() error { return ErrInUse }

func (e *InUseError) Error() string {
	s := "fencedkv: open " + e.Path + ": in use by "
	switch {
	case e.ThisProcess && e.OpenAs != "" && e.OpenAs != e.Path:
		return s + "this process, which opened it as " + e.OpenAs + "; open a store once and share it"
	case e.ThisProcess:
		return s + "this process; open a store once and share it"
	case e.PID != 0 && e.Process != "":
		s += fmt.Sprintf("process %d (%s)", e.PID, e.Process)
	case e.PID != 0:
		s += fmt.Sprintf("process %d", e.PID)
	default:
		s += "another process"
	}
	return s + fmt.Sprintf("; waited %v", e.Waited.Round(time.Millisecond))
}

// CorruptError says what is damaged. It unwraps to ErrCorrupt and to Cause.
type CorruptError struct {
	Path   string
	Detail string
	// LostCommit: exactly one meta page is invalid, so the last transaction
	// may be lost. Options.AcceptLostCommit opens the file nevertheless.
	LostCommit bool
	Cause      error  // nil, or the error behind it
	Stack      []byte // where bbolt panicked, nil if it did not
}

// Unwrap returns ErrCorrupt and the cause.
func (e *CorruptError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrCorrupt}
	}
	return []error{ErrCorrupt, e.Cause}
}

func (e *CorruptError) Error() string {
	return "fencedkv: " + e.Path + ": file corrupt: " + e.Detail
}

// FormatError says why a file is not read. It unwraps to ErrFormat.
type FormatError struct {
	Path   string
	Detail string
}

// Unwrap returns ErrFormat.
func (e *FormatError) Unwrap() error { return ErrFormat }

func (e *FormatError) Error() string { return "fencedkv: open " + e.Path + ": " + e.Detail }

func movedError(path string) error {
	return fmt.Errorf("%w: %s: it was moved, removed or replaced while it was open, and whoever opens the path "+
		"finds another file or none; nothing was written; move it back, or close it and open it by its new name",
		ErrMoved, path)
}
