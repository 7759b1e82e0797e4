// Package crash kills processes that write to a store, and enumerates what a
// power failure may leave of its file, and checks each time what the store has
// promised, not only that its file is sound:
//
//   - every acknowledged write is there, and so is everything that was read;
//   - no mark is lower than anything acknowledged or read, nor than the token of
//     a value that is there;
//   - no write with a lower token came after a higher one was acknowledged;
//   - a transaction on two resources is there as a whole or not at all.
//
// A child process on a FUSE file system, whose server records every write and
// every sync, makes the second kind of crash. What a device may keep of writes
// that were not synced is any subset, torn at 512 bytes; after a sync that failed
// no later one makes up for it. The idea is that of
// Pillai and others, "All File Systems Are Not Created Equal" (OSDI 2014).
//
// CRASH_TIME, a duration, says how long to go on.
package crash
