// Package etcdlock is a locks.Locker on etcd.
//
// [New] takes the program's own etcd client, with its TLS and authentication;
// [Dial] makes one from an address. Most programs then need locks.Do only.
//
// # How it works
//
// A lock is a queue of keys, and the key that was created first holds it:
//
//	key        prefix/NAME/LEASE.N   NAME is percent-encoded, so it is one path element
//	value      HOLDER, unique per attempt
//	lease      LEASE, one etcd lease that all grants of a Locker share
//	token      Seq     = the key's create revision
//	           Lineage = etcd:CLUSTER ID:prefix/NAME
//	           Holder  = HOLDER
//
// Create revisions are revisions of the whole cluster, so they rise with every
// grant, also when nothing of the lock is left. Taking the lock and minting its
// number are one transaction, which creates the key only if it is not there:
// that makes an attempt idempotent by its HOLDER. N is the lowest number that no
// other entry of the lease in this queue has or may have, so a key's name is used
// again by later grants, while its create revision is not. On a live lease it is the only
// request of an uncontended Acquire. TryAcquire creates nothing unless the queue
// is empty.
//
// A waiter watches the key before its own, so a release wakes one waiter, and
// reads the queue again before it believes that it holds the lock. A waiter
// whose key was deleted, or whose lease has ended or takes no new grants, queues
// again at the end.
//
// Every third of the lease time the Locker renews its lease and reads the keys
// of its grants. A grant is renewed when both were answered and its key is
// still the one that it created. The deadline counts from before the request.
// The lease is renewed until the Locker is closed, also while nothing is held.
//
// A lease on which a key may have been left behind takes no new grants, and is
// no longer renewed once the grants that it carries have ended; until then each
// renewal tries to remove that key. A grant that is past Options.MaxHold, or
// whose locks.Do was cancelled, runs out at its deadline although the shared
// lease goes on: its key is then deleted by name. If etcd cannot be reached for
// that, the lease cannot be renewed either and takes the key with it.
//
// etcd 3.5.13 or newer is required and checked once per Locker: older leaders
// that had lost their quorum still answered renewals. Authentication needs read
// and write permission on the prefix.
//
// # Caveats
//
// A cluster that is restored from a backup or built anew usually keeps its id,
// while its revisions go back, so that new grants get numbers that old ones
// had. Restore with etcdutl's --bump-revision and --mark-compacted, or give the
// new cluster its own --initial-cluster-token, which changes its id. Otherwise
// a guarded resource refuses the new holders until the revisions have passed the
// old ones, and a late holder with a high number gets through.
//
// etcd counts the lease time anew when it restarts or changes its leader. A
// crashed holder's lock is then freed later than its TTL, never earlier.
//
// The prefix of one Locker must not lie within a lock of another ("jobs" with a
// lock named "x", and "jobs/x"): the locks would wait for each other. A key
// that somebody else puts into a lock's queue holds the lock like any other.
//
// A client that the program made reconnects at the pace of its gRPC options.
// gRPC's default waits a second after the first failure, which is the whole of
// a short TTL. Dial uses a shorter pace.
package etcdlock
