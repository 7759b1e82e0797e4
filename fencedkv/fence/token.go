package fence

import "fmt"

// Limits of a Token, in bytes before percent-encoding.
const (
	MaxLineage = 256
	MaxHolder  = 128
)

// Token is a fencing token: one grant's place in a sequence of grants.
//
// The zero Token is "no token"; no guard admits it. Tokens are comparable with
// == and safe to copy and to use concurrently. Give a Token or a Mark in a struct
// a field name: a struct that embeds one takes over its text and JSON form, and
// loses its other fields there.
type Token struct {
	// Lineage names the unbroken numbering that Seq belongs to and the lock
	// that it numbers. Two tokens can be ordered only if their lineages are
	// equal. It is empty for a client that has a number and nothing else. At
	// most MaxLineage bytes.
	Lineage string

	// Seq is the place in the sequence of grants. 0 is "no token".
	Seq uint64

	// Holder is unique per grant, and empty if the client has no such id. It
	// tells two grants apart that were given one number, which happens when a
	// lock service loses a write. At most MaxHolder bytes.
	Holder string
}

// Number returns the token of a lock client that knows a number and no more:
// lineage and holder are empty. It is the way in for a lock client that this
// project has no adapter for.
func Number(n uint64) Token { return Token{Seq: n} }

// IsZero reports whether t is the zero Token.
func (t Token) IsZero() bool { return t == Token{} }

// Validate returns nil if t may be offered to a guard. Otherwise it returns an
// error over ErrNoToken (Seq is 0) or ErrBadToken (Lineage or Holder is too
// long).
func (t Token) Validate() error {
	switch {
	case t.Seq == 0:
		return ErrNoToken
	case len(t.Lineage) > MaxLineage:
		return fmt.Errorf("%w: lineage has %d bytes, the limit is %d", ErrBadToken, len(t.Lineage), MaxLineage)
	case len(t.Holder) > MaxHolder:
		return fmt.Errorf("%w: holder has %d bytes, the limit is %d", ErrBadToken, len(t.Holder), MaxHolder)
	}
	return nil
}
