// Package locktest is the kit that every locks.Locker must pass. [Run] takes a
// factory and has one subtest per duty of the contract; see locks.Locker for
// the duties. A subtest that fails says which sentence of the contract is
// broken, and what was seen instead.
//
// An adapter's test makes a [Service]: how to get a Locker, and what can be
// done to the service behind it, such as to cut one client off or to delete an
// entry by hand. Each ability that is missing skips the subtests that need it,
// by name, so that a run without skips has checked every duty.
//
// # Caveats
//
// The kit looks from outside. It cannot see that a late copy of a request is
// harmless, nor stop its own process; an adapter tests these by itself.
//
// It waits for events, with deadlines that are generous (Service.Patience).
// Only the subtest of one failed renewal has to act within a lease time.
package locktest
