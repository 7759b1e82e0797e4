// Package redislock is a locks.Locker on one Redis server, or on what looks like
// one: a primary found through Sentinel, or a Cluster.
//
// Choose it where Redis is there anyway and locks are taken often: an
// uncontended Acquire is one round trip, and so is Release. Choose an adapter on
// ZooKeeper or etcd where a lock must survive the loss of a server.
//
// Most programs need two names: [New] with a client of their own, or [Dial].
//
// One script takes the lock and numbers the grant, in one atomic step. The number
// is the larger of the last one plus 1 and the server's time in microseconds. So
// a number lost to a flush, an eviction, a restart or a failover is still
// followed by a higher one. Numbers stay below 2^53.
//
// Redis 6.2 or newer, or a compatible server; the first use asks, with one INFO.
//
// # Keys
//
// NAME is the lock's name in which every byte but letters, digits and "._/:-"
// is written as %XX. The braces make it the hash tag, so that the keys of one
// lock share a Cluster slot, whatever the name.
//
//	key                     type    content                         expires
//	PREFIX:{NAME}:lock      string  "NUMBER HOLDER"                 TTL after the last renewal
//	PREFIX:{NAME}:last      string  the last grant, the same text,  a day after NUMBER read as
//	                                and " released" if it was       microseconds since 1970, and
//	                                                                after the last renewal
//	PREFIX:{NAME}:queue     zset    waiters by time of arrival      2 TTL after the last poll
//	PREFIX:{NAME}:alive     zset    waiters by time when forgotten  the same
//	PREFIX:{NAME}:gone:ID   string  empty; a withdrawn attempt      2 TTL + 1 min
//	PREFIX:{NAME}:wake      channel ids of the first two waiters
//
// An ACL user needs those keys and channels and the commands EVAL, EVALSHA, GET,
// SET, DEL, EXISTS, PEXPIRE, PTTL, TIME, ZADD, ZREM, ZRANGE, ZRANGEBYSCORE, ZRANK,
// ZCOUNT, PUBLISH, SUBSCRIBE, UNSUBSCRIBE and PING; INFO is asked for and not
// needed, and Options.WaitReplicas needs WAIT. A user without the channels waits
// by polling.
//
// # Waiting
//
// A release wakes the waiter that has waited longest, by a message; the next
// one looks 50 ms later whether the first was alive. Behind that all waiters poll.
// The order is not strict: whoever calls Acquire while the lock is free gets it.
//
// # Caveats
//
// Replication is asynchronous. A failover can forget a grant, and then two
// holders believe in the lock; an old primary that was cut off may go on
// granting for as long as clients reach it. The newer number is still higher,
// unless the new primary's clock is behind by more than the failover took, or both
// primaries grant at once; if two are equal, the holders differ.
// Options.WaitReplicas narrows this and does not close it.
//
// If the server's clock is set back and its memory is lost, numbers go back: a
// guarded resource then refuses the new holders until the clock has caught up.
// The clock alone set back by less than a day is harmless; by more, a number may
// have been forgotten by its age. Set forward it ends leases early, before their
// holders know.
//
// maxmemory-policy must be noeviction, because every key here may be evicted by
// the volatile policies too. A warning is logged for any other.
//
// A holder that crashes leaves the lock held until TTL is over. A waiter that
// crashes is forgotten after twice the TTL, and until then TryAcquire on a free
// lock may report it as held.
//
// Some copy of a request may reach the server late, after a connection was lost.
// Copies for the last grant and for withdrawn attempts are recognized and refused.
// A copy older than that can take a free lock for nobody, until TTL is over.
// A release whose reply was lost reports locks.ErrLost if the next holder had the
// lock before the client asked again.
//
// Two Redis servers, or two databases of one, that use the same prefix number the
// same lineage. Use a prefix for each, if their tokens reach one resource.
//
// The addresses and passwords of the client are the client's business; this
// package never prints them.
package redislock
