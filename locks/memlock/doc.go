// Package memlock is a lock service inside one process: a [Server] keeps the
// locks, and each [Locker] on it is a client of its own, like one machine.
//
// [New] is the usual way in: a Locker on a server that nobody else has. Several
// Lockers share a server through [Server.NewLocker]. A program that serves a
// Server to other processes gives them a [Backend] that carries its calls, and
// they use [NewLocker].
//
// Locks are granted first come, first served. The next waiter is granted the
// lock in the moment in which it becomes free, so that nobody can barge in, and
// only that waiter wakes.
//
// # Caveats
//
// The numbering dies with the process. A Server therefore has a random id,
// which is part of the lineage of its tokens: after a restart of the process a
// guarded resource refuses the new tokens with fence.ErrLineage, because it
// cannot order them after the old ones. Keep the resource no longer than the
// Server (a new store per process life), or use a lock service that outlives the
// process.
//
// A Server excludes the clients of one process, or of one server process. It is
// not replicated.
//
// A waiter that stopped to ask (its process died) keeps its place for one lease
// time; if the lock is granted to it in that time, nobody has the lock until
// the grant runs out.
//
// Lease times are measured with the monotonic clock of the server's process.
package memlock
