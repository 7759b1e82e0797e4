// Package faults lets every fault meet every Locker at every moment, on real
// servers, and checks what is left.
//
// A cell of the matrix is an adapter (redislock, Redlock, etcdlock, zklock), a
// moment (acquiring, waiting, holding, renewing, releasing) and a fault. In each
// cell three clients want one lock. The victim is a process of its own, behind
// proxies; the fault hits it, its network or the service. The peer, straight at the
// service, holds the lock before the victim where the victim waits, and is its
// successor. The observer asks the service all the time whether it still has the
// victim's grant. All of them write to one store with their tokens.
//
// When the fault is over, these are checked:
//
//   - The numbers of all grants are unique and rise.
//   - The store admitted nothing out of order, and refused nothing else.
//   - A loss by expiry was signalled before the service could grant again. The
//     margin is the time from the end of the victim's Lease.Context to the first
//     moment at which the observer saw its grant gone, or the successor had the
//     lock. A client that was stopped must know at its first look after it wakes.
//   - Any other loss was signalled by the next renewal.
//   - A fault that is over long before a lease, such as a connection that is reset,
//     has cost nobody the lock.
//   - After twice the TTL the service has no entry without an owner, and the lock can
//     be taken again.
//   - When the victim's Locker is closed, none of its process's goroutines is left.
//
// FAULTS=all runs all cells, and so does a flag -run with a slash in it, which then
// selects: TestEveryFaultAtEveryMoment/etcdlock/reply_lost/waiting. Else it is a
// sample, chosen by the flag -seed.
//
// # Caveats
//
// It runs on Linux only. Times of two processes are compared by the wall clock: if
// that is set during a run, margins are wrong.
//
// On a busy machine a process may not run for longer than a margin is wide, and
// then nobody can be told in time. Each process therefore measures for how long it
// did not run, the observer how long the service took to answer, and a cell that this may explain is repeated, four times at most. No
// such pause explains numbers or writes out of order, or a look at a lease that says
// it is good when it is not.
package faults
