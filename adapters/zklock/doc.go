// Package zklock takes locks at a ZooKeeper server or ensemble, version 3.5 or
// newer. Begin with [Dial]; a Locker works as package locks says.
//
//	locker, err := zklock.Dial("zk://zoo1:2181,zoo2:2181,zoo3:2181/locks", nil)
//	lease, err := locker.Acquire(ctx, "accounts/42")
//
// It is the lock recipe of the ZooKeeper documentation: every attempt creates
// an ephemeral sequential node, the lowest number holds the lock, and every
// other attempt watches the one just before its own.
//
//	root                                   persistent, made on first use
//	root/accounts%2F42                     persistent: the lock, and its numbering
//	root/accounts%2F42/_c_ID-lock-N        ephemeral: one attempt; ID is random,
//	                                       N the sequence number, its data the Holder
//
// Other children of the lock node are ignored. Bytes of a lock name outside
// [A-Za-z0-9_:.-], and a dot that begins it, are percent-encoded.
//
// # Tokens
//
// Seq is N + 1, and Lineage is "zkseq:PATH@CZXID.CTIME" of the lock node: its
// path, the transaction that created it (hexadecimal), and when (milliseconds).
// With Options.UseZxid, Seq is the transaction id that created the attempt's
// node and Lineage is "zkzxid:PATH@CZXID.CTIME" with the two numbers of the
// root node. Holder is the data of the node.
//
// # Leases
//
// A Locker has one session, which its grants share. Its timeout is the one that
// the server negotiated. While there are grants, one transaction every eighth of
// it checks that their nodes are still there. The lease time is counted from
// the last sign of life that the leader is known to have seen: a server that is
// cut off from its leader still answers pings, but pings reach the leader
// before a later transaction that came the same way does. This takes for
// granted that the server's minSessionTimeout is at least twice its tickTime,
// which is the default.
//
// An uncontended Acquire is two round trips, and TryAcquire three, because it
// looks before it creates, so that failed attempts use up no number.
//
// # Caveats
//
// Lock nodes stay, empty, one per lock name ever used. They hold the numbering.
// Deleting one while nobody uses it is safe in so far as the next token has
// another Lineage, so that a guarded resource refuses it with fence.ErrLineage
// instead of believing a lower number. The same happens if somebody made the
// lock node a container, which a client cannot see. For names without end use
// Options.UseZxid, with which lock nodes may be deleted whenever they are empty.
//
// A sequence number has 31 bits. From 2^30 a warning is logged, and close to
// 2^31 Acquire returns an error over locks.ErrUnsupported: delete the lock node.
//
// An ensemble that was restored from an older snapshot repeats numbers within
// one Lineage. A guarded resource refuses them as stale; delete the lock nodes
// (with UseZxid: the root node) after a restore.
//
// All clients of one lock must use the same root and the same setting of
// UseZxid.
package zklock
