package engine

import (
	"errors"
	"fmt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// What an engine reports besides the sentinels of package boltfile.
var (
	ErrNotFound       = errors.New("fencedkv: no such key")
	ErrTxDone         = errors.New("fencedkv: the transaction is over")
	ErrNotClaimed     = errors.New("fencedkv: the resource is not among the claims")
	ErrTooLarge       = errors.New("fencedkv: too large")
	ErrFailed         = errors.New("fencedkv: the store has failed and must be opened anew")
	ErrUnknownOutcome = errors.New("fencedkv: the outcome is unknown, the write may or may not be applied")
)

// SizeError is a limit that was passed. It unwraps to ErrTooLarge.
type SizeError struct {
	What        string
	Size, Limit int
}

func (e *SizeError) Unwrap() error { return ErrTooLarge }

func (e *SizeError) Error() string {
	return fmt.Sprintf("%v: %s of %d bytes, the limit is %d", ErrTooLarge, e.What, e.Size, e.Limit)
}

// UnansweredError is the result of a Tx that would raise a mark with a claim
// that is not verified. It is neither admitted nor refused: the lock service is
// to be asked, and the Tx may be given to Do again.
type UnansweredError struct{ Claim Claim }

func (e *UnansweredError) Error() string {
	return fmt.Sprintf("fencedkv: not applied: resource %q would be raised to %v, which is not verified", e.Claim.Resource, e.Claim.Token)
}

// Damage is a record, or the lack of one, that cannot be right. It unwraps to
// boltfile.ErrCorrupt.
type Damage struct {
	Path     string
	Kind     string // "header", "mark", "value" or "digest"
	Resource string // empty for the header
	Key      []byte // set for a value
	Problem  string
}

func (d *Damage) Unwrap() error { return boltfile.ErrCorrupt }

func (d *Damage) Error() string {
	s := fmt.Sprintf("%v: %s: %s", boltfile.ErrCorrupt, d.Path, d.Kind)
	if d.Resource != "" {
		s += fmt.Sprintf(" of resource %q", d.Resource)
	}
	if len(d.Key) > 0 {
		s += fmt.Sprintf(", key %q", d.Key)
	}
	return s + ": " + d.Problem
}
