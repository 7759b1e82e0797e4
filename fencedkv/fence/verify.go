package fence

import "context"

// Verifier asks the lock service whether a token is its current grant. It
// closes what order alone cannot: a forged number, a mark that a restored
// backup rolled back, a grant that the service no longer knows.
//
// It is the contract only: no Locker of this project implements it yet, and the
// store of package fencedkv does not ask one yet.
//
// # Implementing
//
// Verify compares Seq and Holder with the current grant of the lock that
// guards resource, by a read that is at least as new as the call (linearizable,
// or from the primary). A waiter's number is not a grant. It returns nil if
// they are equal and an error over ErrUnverified otherwise, also when the
// service cannot be reached; the text says which. It must be safe for
// concurrent use and must return soon after ctx ends.
type Verifier interface {
	Verify(ctx context.Context, resource string, t Token) error
}
