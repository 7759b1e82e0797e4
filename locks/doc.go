// Package locks is the contract between a program that needs a lock and the
// service that grants it: a [Locker] hands out a [Lease], and the lease carries
// the fencing token with which a guarded resource refuses stale writers.
//
// Most programs need one function, [Do], which acquires, runs, and releases.
// Those that guard a fencedkv resource need its Exclusive method instead.
//
// The adapters are packages of their own, one per service. Package memlock is
// an in-process Locker for tests and single processes, and package locktest is
// the kit that every Locker must pass.
//
// # Caveats
//
// A lease can run out while its holder still believes in it, and no Locker can
// prevent that. [Lease.Context] ends in time only while this process runs; a
// process that was stopped finds out when it wakes. Send the token with every
// write and let the resource decide.
//
// Elapsed time is the larger of what the monotonic and the wall clock say,
// because the monotonic clock of some systems stands still while the machine
// sleeps. A wall clock that is set forward by more than the remaining time
// therefore ends a lease early, which is the safe side.
package locks
