// Package redislock is a locks.Locker on one Redis server, or on what looks like
// one: a primary found through Sentinel, or a Cluster.
//
// Choose it where Redis is there anyway and locks are taken often: an
// uncontended Acquire is one round trip, and so is Release. Where a lock must
// survive the loss of a server choose an adapter on ZooKeeper or etcd, or [Redlock]
// on several independent servers, for which see below.
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
//	PREFIX:{NAME}:lock      string  the grant: "NUMBER HOLDER", or  TTL after the last renewal
//	                                a waiter's turn: "reserved ID"  ClaimTime
//	PREFIX:{NAME}:last      string  the last grant, the same text,  a day after NUMBER read as
//	                                and " released" if it was       microseconds since 1970, and
//	                                                                after the last renewal
//	PREFIX:{NAME}:queue     zset    waiters by arrival, in          2 TTL after the last poll
//	                                microseconds since 1970
//	PREFIX:{NAME}:alive     zset    waiters by time when forgotten  the same
//	PREFIX:{NAME}:gone:ID   string  empty; an attempt that is over  2 TTL + 1 min
//	PREFIX:wake:LOCKER      channel "ID", or "ID MS": to look in MS
//
// A waiter's ID is the name of its LOCKER, a dot and a count, and becomes the
// HOLDER of its grant.
//
// An ACL user needs those keys and channels and the commands EVAL, EVALSHA, GET,
// MGET, SET, DEL, EXISTS, PEXPIRE, PTTL, TIME, ZADD, ZREM, ZRANGE, ZRANGEBYSCORE, ZRANK,
// ZSCORE, PUBLISH, SUBSCRIBE and PING; INFO is asked for and not needed, and
// Options.WaitReplicas needs WAIT. A user without the channels waits by polling.
//
// # Waiting
//
// First come, first served: waiters have the lock in the order in which the server
// came to know them, and nobody overtakes them, TryAcquire included. A release
// reserves the lock for the first waiter for Options.ClaimTime and tells it by a
// message; it claims the lock with one request, from which its TTL and its deadline
// count. No other waiter is woken, however many there are: a handover is two
// requests.
//
// A waiter that does not claim in time, because it is dead or stopped, has lost its
// turn and is a waiter no longer. If it asks again it has its old place, so it is
// the first again. Another Locker's waiter is told to look when the claim time is
// over, and whoever looks then gives the next its turn or has the lock. So a dead
// waiter costs one claim time, once. A waiter that is cancelled gives its turn on at
// once.
//
// Messages can be lost. The first eight waiters look when a holder's lease or a
// reservation runs out, by what they last knew of it, one after the other; the
// first two also ask every Options.PollInterval, and within each claim time if
// messages do not reach them or have come too late; all others every three quarters
// of TTL. If the queue is lost, in a flush or a failover, who asks first has the
// lock, and the others have their places again as they ask.
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
// crashes is forgotten when its turn has passed or after twice the TTL, and until
// then TryAcquire on a free lock may report it as held. If all the waiters that
// would look have died with it, or are stopped, the next one's poll goes on.
//
// Some copy of a request may reach the server late, after a connection was lost.
// Copies for the last grant and for withdrawn attempts are recognized and refused,
// and so are, after its release, those for a grant that this package had to ask for
// again without an answer. A copy that the client library has made by itself, and
// that comes after the next grant, can take a free lock for nobody, until TTL is
// over, or wait for nobody, which costs a claim time.
// A release whose reply was lost reports locks.ErrLost if the next holder had the
// lock before the client asked again.
//
// Two Redis servers, or two databases of one, that use the same prefix number the
// same lineage. Use a prefix for each, if their tokens reach one resource.
//
// The addresses and passwords of the client are the client's business; this
// package never prints them.
package redislock
