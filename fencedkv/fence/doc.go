// Package fence holds the fencing token and the one rule that every guarded
// resource applies to it.
//
// A lock service hands out a number that grows with every grant. Each write
// carries that number, and the resource refuses a number lower than the highest
// it has admitted. A holder that was paused until its lease ran out then cannot
// overwrite what its successor wrote. The idea is described by Martin Kleppmann
// in "How to do distributed locking" (2016) and, earlier, as the sequencer of
// Burrows, "The Chubby lock service" (OSDI 2006), section 2.4.
//
// Most programs need two names: [Number], which turns the bare number of any
// lock client into a [Token], and [RejectedError], which says why a token was
// refused. [Admit] is the rule itself, for those who build another guard.
//
// # Caveats
//
// Order is all that a number can prove. A forged number, or one that a restored
// backup lets in again, is caught only by asking the lock service: see
// [Verifier], and Options.Verifiers of package fencedkv.
//
// A sequence number is never a floating-point number. Lua's tostring corrupts
// numbers from 1e14 and JSON readers corrupt them from 2^53, so a Token travels
// as text.
package fence
