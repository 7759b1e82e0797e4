// Package boltfile opens and creates the store's bbolt file so that what was
// acknowledged stays, and so that damage reaches the caller as an error.
//
// [Open] is the way in. It creates a missing file under a temporary name and
// publishes it with link(2), waits a bounded time for the lock of another
// process, checks both meta pages and the free list under that lock, writes the
// current meta page again and syncs it before bbolt sees the file. [File] begins
// and ends transactions: reads see what is durable, and a commit that failed has
// one of three outcomes, see [CommitError]. [Guard] turns bbolt's panics and memory
// faults into [ErrCorrupt]. [State] is the last durable state, which all readers
// share, and [Tree] reads it without bbolt. [PageCheck] looks at the pages that
// bbolt is about to follow in a write transaction.
//
// The file is a plain bbolt file, version 2. What is read of it without bbolt (the
// structs of internal/common in bbolt 1.5; integers in the byte order of the
// machine):
//
//	page header   id uint64, flags uint16, count uint16, overflow uint32
//	branch        flags 1; count elements: position of the key uint32, its size
//	              uint32, page uint64; the keys
//	leaf          flags 2; count elements: flags uint32, 1 for a bucket, position
//	              of the key uint32, its size uint32, size of the value uint32;
//	              keys and values, each value behind its key
//	bucket        the value of a leaf: root page uint64, sequence uint64; and, if
//	              the root is 0, a page that is a leaf
//	meta          magic uint32 0xED0CDAED, version uint32 2, page size uint32,
//	              flags uint32, root uint64, sequence uint64, free list uint64,
//	              high-water page id uint64, transaction id uint64,
//	              FNV-64a of the 56 bytes before it
//
// A position is counted from its element. Overflow is how many more pages a page
// takes. The key of a branch is the first one of the page that it leads to. The
// metas follow the headers of pages 0 and 1. The valid one with the higher
// transaction id is the current one.
//
// # Platforms
//
// Linux, macOS and the BSDs lock with flock(2). On Linux an [InUseError] names
// the process that holds the file, elsewhere it does not. Address space is
// reserved, and a State shared, on 64-bit Unix only: on Windows a reservation would
// make the file that large, on a 32-bit machine there is none to spare, so there a
// commit that grows the file waits for the open readers.
//
// Windows publishes with a move that replaces nothing, and has no sync of a
// directory. Its locks exclude even their owner, so Open takes a lock byte of
// its own beside bbolt's: between two users of this package it is exact, but
// another bbolt program could still write between the check of the meta pages
// and bbolt's own lock.
//
// # Caveats
//
// Data pages have no checksum; what stands in them is the business of the
// layers above. [State.CheckPages] finds pages that do not hang together. A valid
// meta page proves that it is one, not that it is the newest ever written: a disk
// that loses an acknowledged write shows nothing. While the file is open that is
// known, and [File.Intact] finds what is written over it, unless its last
// transaction has the same number, or the next.
//
// A creator that is killed leaves at most one file named .fencedkv-*.tmp. It is
// never opened as a store; the next creation in the same directory removes it,
// if no living process holds its lock.
//
// A lock on a network file system is as good as that file system's. Copying a
// file while it is open copies a mixture of its states.
//
// A panic of bbolt while it begins or ends a transaction, or a write to a file that
// was cut short, puts the File out of use for good: every later Begin and Acquire
// returns the error, and Close works. A panic while pages are read is an error of
// that call alone.
//
// Branch pages that lead in a circle are no panic: bbolt descends until the stack
// overflows, and the process ends. What reads a transaction with bbolt's own
// cursors needs a PageCheck before each step.
//
// Shared States assume that one commit writes at most 512 MiB of new content, see
// commitRoom. A larger one in a file of 15 GiB could wait for ever.
package boltfile
