// Package engine keeps records, marks and transactions of a fencedkv store in
// one bbolt file. It knows the format and the order of steps, and nothing of
// the public API: names and limits are checked by its caller.
//
// A write is a [Tx]: claims of tokens on resources, and an overlay of writes
// that waits in memory. [Engine.Do] queues it. The committer, a goroutine that
// lives from Open to Close, takes what is queued, decides each Tx by fence.Admit
// on the state that those before it left, applies it to one bbolt transaction,
// commits once, and delivers the results. A function that makes the writes of a
// Tx runs on its caller's goroutine, while the committer waits for it. A Tx that
// comes alone, without a function, is decided and committed by its caller.
//
// Reads do not use bbolt: a [Snapshot] of [Engine.View] is a boltfile.State, and a
// Get allocates nothing but the value. A write transaction reads with bbolt, which
// alone knows what the batch has written, behind boltfile.PageCheck.
//
// # File format
//
// A file is a bbolt database with three buckets. Integers are big-endian.
//
//	bucket    key                                          value
//	fencedkv  "header"                                     header record
//	marks     resource                                     mark record
//	data      resource length (2 bytes), resource, key     value record
//
// The length in front keeps the keys of one resource together and in order.
//
// Header record, 76 bytes:
//
//	offset  size  content
//	0       8     "fencedkv"
//	8       4     CRC-32C of all other bytes of the record
//	12      4     format version, 1
//	16      16    random id of the store
//	32      8     number of marks
//	40      8     digest of all marks
//	48      8     number of values
//	56      8     digest of all values
//	64      4     number of lost commits that were accepted at Open
//	68      8     when the last one was, Unix time in nanoseconds
//
// The first 16 bytes have this meaning in every version, so that a damaged
// header is told from a newer one.
//
// Mark and value records:
//
//	offset  size  content
//	0       1     kind, 'M' or 'V'
//	1       4     CRC-32C of kind, resource length (2), resource, key length (2), key, content
//	5             content
//
// The key of a mark is empty. The content of a value is the value. The content
// of a mark is the time it was raised, 8 bytes of Unix time in nanoseconds, and
// the text form of its token (see package fence).
//
// A digest is the sum modulo 2^64, over all records of its kind, of a number made
// from the record's checksum and size: see digest. A sum does not depend on the
// order, and one record can be taken out of it.
package engine
