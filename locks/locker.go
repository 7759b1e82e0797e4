package locks

import (
	"context"
)

// Locker acquires named locks at one lock service.
//
// # Implementing
//
// A Locker is safe for concurrent use, and two goroutines of one process
// exclude each other like two machines do. It keeps these duties, each of which
// is a test of package locktest:
//
//  1. Tokens rise with every grant: after release, after expiry, across
//     clients, across a restart of the service. Taking the lock and minting
//     its number are one atomic step on the service.
//  2. Every attempt has an id of its own and is idempotent by it: a command
//     that is repeated after a lost reply returns the same token, and a late
//     copy of an earlier attempt's request never matches a newer attempt.
//  3. Nothing stays behind: whatever the exit, the Locker removes its own
//     entry, in the background if the service is away, bounded in time.
//  4. After waiting, Acquire checks that its own entry still exists and is the
//     one that it made.
//  5. Release and cleanup compare before they delete, are detached from the
//     caller's cancelled context, and have a timeout of their own.
//  6. Loss by expiry is signalled before the service may grant again. Other
//     losses are signalled at the latest at the next renewal. One failed
//     renewal is not loss while time remains.
//  7. Renewal only updates: it never creates a lost lock again. A lost lease is
//     terminal. Renewal ends with Release, loss, Close, the adapter's MaxHold,
//     or the context of Do; Acquire's context bounds the waiting only.
//  8. Any name that CheckName accepts is a lock of its own: "a" beside "a/b"
//     and "a%2Fb".
//  9. Waiters do not stampede: a release wakes one.
//  10. Errors are *Error over the sentinels of this package, and errors.Is
//     finds ctx.Err() as well. Options that the service cannot keep are errors.
//     Passwords in addresses are never printed.
//
// A Locker should also be a fence.Verifier, as each of this project is, so that a
// guarded resource can ask it whether a token is the current grant.
//
// Build leases with NewLease, or with a Group, which also owns their
// goroutines.
type Locker interface {
	// Acquire waits until the lock is granted or ctx is done. Its error is over
	// ErrCancelled (ctx ended first; also over ErrHeld if somebody held the
	// lock when last seen, and over ErrUnreachable if the service was away),
	// ErrUnreachable, ErrBadName or ErrClosed.
	Acquire(ctx context.Context, name string) (*Lease, error)

	// TryAcquire returns an error over ErrHeld if somebody has the lock or
	// waits for it, and otherwise behaves like Acquire.
	TryAcquire(ctx context.Context, name string) (*Lease, error)

	// Close releases every lease and ends all renewals and watches. No
	// goroutine is left when it returns nil. If ctx ends first, Close returns
	// its error; cleanup of entries then goes on, bounded by the lease time.
	// Calls after the first wait for the same end.
	Close(ctx context.Context) error
}
