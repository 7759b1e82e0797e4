// Package fencedkv is an embedded key-value store that refuses stale writers.
//
// A lock lease can run out while its holder, paused, still believes in it. No
// lock client can prevent that; only what is written to can. So every write to
// a [Resource] carries the fencing token of its lock, the store remembers the
// highest token that each resource has admitted, and it refuses a write with a
// lower one. The rule, and what a refusal says, is in package fence.
//
// Most programs need two functions: [Open], and [Resource.Exclusive], which
// acquires the lock of a resource, shuts out older holders and runs a function
// that reads and writes. With a lock client of another kind, [Resource.Raise]
// is the first step of a new holder, and Put, Delete and Update take the token
// that the client gives, or fence.Number of a bare number.
//
// # Verification
//
// Order is all that a number can prove. With [Options.Verifiers] a store also asks
// the lock service, before a write that would raise a mark is queued, whether its
// token is the current grant: each Locker of this project is a fence.Verifier. That
// refuses forged numbers, those of waiters, of released leases and of other locks,
// those that a restored backup would let in, and grants that the service has lost.
// The refusal is a *fence.RejectedError over fence.ErrUnverified, and
// *fence.UnverifiedError beneath it tells why: the service says no, it does not
// answer, or nobody knows the lineage. A write that does not raise the mark asks
// nobody, and callers that bring one token at one time share a question.
//
// What was the current grant when the service answered may have ended when the
// write is committed. That is harmless: its successor's token is higher, and order
// decides.
//
// # Durability
//
// When Raise, Put, Delete or Update returns nil, what it wrote and the mark that
// it raised are on disk, in one transaction. When it returns an error nothing is
// applied, with one exception: [ErrUnknownOutcome]. A call whose context ends
// before its commit begins is not applied; after that the outcome is awaited,
// whatever the context does.
//
// A value, a mark or a refusal rests on what is on disk: a read sees the last
// commit that has ended and does not wait for the one in flight. Where no address
// space can be reserved (32-bit platforms and Windows), or in a file that has grown
// to a quarter of it (about 15 GiB, more if it was larger when it was opened), a
// read that would see a commit in flight waits for it.
//
// A commit can fail in three ways. If it found no room (the disk is full, a
// quota or a limit on the size of files is reached) nothing is applied, the error
// is over that of the system, such as syscall.ENOSPC, and the store goes on: with
// room it works again. If writing or syncing failed before the meta page, which
// makes a transaction visible, was written, nothing is applied and the error is
// over [ErrFailed]. If it failed at the meta page the error is over
// [ErrUnknownOutcome]. After the last two the store refuses every further call,
// reads too, with [ErrFailed], because what the disk holds and what the system
// shows may differ. Close it and open it anew.
//
// # Concurrency
//
// A [Store] and its resources may be used from any number of goroutines. Reads
// see the last durable write. Writes take effect one after the other, in the
// order in which they came, and share commits: while one is synced the next ones
// queue, and all that are queued when it ends, up to 4096 or 64 MiB, are the next
// one. Each is decided on the state that those before it left. One that is
// refused, fails or panics undoes only itself; where that rests on a write of the
// same commit, its error is returned after the commit.
//
// Functions given to Update and View run on their caller's goroutine. They use
// the transaction that they get: a call of the store with their context is
// [ErrNested], and so is every call on their goroutine, with any context, Close and
// reads too.
// A function of Update may run again, if something else made its commit
// impossible. One that waits for another goroutine that writes waits for ever;
// one of View does where the file has to grow for it and no address space can be
// reserved (32-bit platforms and Windows).
//
// # File format
//
// The file is a bbolt database with mode 0600, format version 1. Its buckets:
//
//	fencedkv  a header: version, random id, number and digest of marks and values
//	marks     resource → highest token in text form and the time it arrived
//	data      resource and key → value
//
// The header and each record carry a CRC-32C, which covers the names as well as
// the content. A newer version is refused with [ErrFormat]. Any bbolt tool can
// read the file; none may write it. Every byte is described in the doc comment
// of internal/engine.
//
// # Caveats
//
// The first token binds a resource: tokens of another lineage are refused from
// then on. Without verification whoever comes first, or offers a huge number, is
// believed.
//
// A file that is restored from a backup, or repaired with bbolt's tools, has old
// marks: writers that were shut out since then are let in again, unless
// verification is on. Even then the one whose token is the old mark is, until the
// present holder raises it: let it do so before others may write.
// [Options.AcceptLostCommit] does the same for one commit.
//
// Verification is no authentication. A refusal names the current grant, and whoever
// offers that token is believed. While the lock service is away no new holder gets
// in; the one whose mark is raised goes on.
//
// A copy of the file that is made while the store is open may be damaged. Close
// the store first.
//
// bbolt's pages have no checksum. A damaged record is an error that names it,
// never a wrong value, and a record that is missing is believed only if its
// neighbours are sound and enclose it; a mark also only if its resource holds no
// data. Open looks at how all pages hang together, and compares marks and values
// with their digests, if there are no more than 1024 of each; in a file of up to
// 4,096 pages it looks at all but the leaves. [Store.Check] does all of it for
// every store, and finds what reads cannot: in a store of 1100 marks and as many
// values 222 of the 17,488 bits that say where records are, each of which makes a
// page claim more room than it has, and a page as it was before a write that the
// disk has lost, whose old marks and values are sound and are believed until then.
// In a larger file a damaged page number can lead to such a page as well. A lost
// write of the meta page, which ends a commit, leaves the store as it was before
// that commit, and nothing can find it.
//
// A file that is moved, removed or replaced while it is open is not written to any
// more: a write is [ErrMoved] as long as the path that was opened, from the working
// directory of that time, names another file or none. Reads go on in the open file.
// Each commit looks before it begins, so that one that has begun goes with the
// file. A program that changes its root directory afterwards cannot write; one that
// gives up the right to look at the path is not held up, and a move is not seen.
// An older copy or another store that is written over the open file is
// [ErrCorrupt], of reads and writes, from then on, unless its last transaction has
// the number of the last one here, or the next.
//
// Space that is freed is used again one commit later, but the file never shrinks.
// A long View keeps the space that is freed meanwhile from being used again. The
// file does not belong on a network file system.
package fencedkv
