// # Redlock
//
// [NewRedlock] and [DialRedlock] make a Locker on N independent servers, of which
// any minority may be away. Redlock as published has no fencing token. This one
// has, from one round of requests while the servers are in step:
//
//  1. All servers are asked at once, with the client's clock in microseconds and a
//     little more as the floor. Each takes the lock if it is free and moves its
//     counter to max(counter + 1, min(floor, its clock + 1 s), its clock), which
//     is what it replies. All hear the same floor, so in step all give one number.
//  2. With grants from a majority the token is the highest number among them. That
//     set is final: a later reply is not counted.
//  3. A server of the set that gave that number has confirmed it. The others store
//     it, if the lock is still this attempt's and the counter is still what they
//     gave, and have confirmed it then.
//  4. If a majority has confirmed, and time is left of TTL less what has passed
//     since step 1 and less 1 % and 2 ms, the lock is held.
//  5. Otherwise it is given back on all servers, and tried again after a random
//     time.
//
// Two grants share a server that has confirmed both. There one of them stored its
// token while the lock was its own, so the other took it there afterwards, and got
// a higher number. That needs no clocks. A search through all behaviours of three
// servers, in tests/redlock/model, finds no exception.
//
// A renewal needs a majority, and then takes the lock again on servers that have it
// free, if their counter is there and has not passed the token. Each request to a
// server has a time limit, [RedlockOptions].NodeTimeout; one that hangs is not
// waited for again until it has replied. A release wakes the waiter that has waited
// longest, and a waiter asks when a majority has told it.
//
// These are the keys on each server. NAME is as above.
//
//	key                             type    content                          expires
//	PREFIX:redlock:{NAME}:lock      string  HOLDER                           TTL after the last renewal
//	PREFIX:redlock:{NAME}:count     string  "NUMBER HOLDER" of the last to   a day after NUMBER read as
//	                                        take it here, and " released"    microseconds since 1970, and
//	                                        if it was                        after the last renewal
//	PREFIX:redlock:{NAME}:queue     zset    waiters by time of arrival       2 TTL after the last poll
//	PREFIX:redlock:{NAME}:gone:ID   string  empty; a withdrawn attempt       2 TTL + 1 min
//	PREFIX:redlock:set              string  NAME OF THE SET/N                never
//	PREFIX:redlock:bid              string  a proposal for that name         never
//	PREFIX:redlock:node             string  random id of the server          never
//	PREFIX:redlock:rest             string  empty; the server has forgotten  TTL + 2 s
//	PREFIX:redlock:wake:CLIENT      channel id of the waiter whose turn it is
//
// The lineage of the tokens is "redlock:SET/N:PREFIX:NAME". Another set of servers
// is another lineage, because two sets share no majority.
//
// # Caveats of Redlock
//
// The servers must not forget: use appendonly yes and appendfsync always, and
// maxmemory-policy noeviction. A warning is logged if a server keeps nothing. One
// that has lost all its data notices, and grants nothing for TTL + 2 s: that keeps
// the order if no client has a longer TTL and the servers' clocks differ by less
// than a second. One that has lost only its last writes does not notice. A number
// that is given twice is still refused at the store, by its Holder.
//
// The servers must be independent: no replicas of each other, no failover, no
// Cluster. The name of a set tells clients with other lists apart as far as it can:
// servers of two sets, or a minority of one with new ones, are refused, and so is
// another number of servers. But a list in which a minority was replaced is taken
// for the same set, whose new servers have forgotten. Change all clients before the
// next one is replaced, and never run two lists at a time.
//
// Exclusion, other than the order of the tokens, rests on time, as with one server: a
// server whose clock is set forward ends a lock early.
//
// Waiters are woken in the order of their arrival by their own clocks, and nothing
// keeps a client that comes later from being faster. TryAcquire does not look
// whether somebody waits.
package redislock
