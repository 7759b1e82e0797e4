// Fencedkv-demo shows what a stale writer does, and how a fencing token stops
// it. It needs nothing but Go:
//
//	go run ./cmd/fencedkv-demo
//
// Two client processes withdraw money from one account. Each takes a lock, reads
// the balance, looks at its lease, and writes back what is left. Client A is
// really stopped (SIGSTOP) between its look and its write, until its lease has
// run out and client B has the lock:
//
//	client A   acquire ─ read 100 ─ look ─ ■ stopped ......................... ► write 70
//	lock           token 33 ──────────────────── runs out ─ token 34
//	client B                                        acquire ─ read 100 ─ write 80
//	store                                                                  80      ?
//
// The play has two acts. In the first the store is a plain map, which takes
// A's write: B's withdrawal is lost, although both had the lock. In the second
// the store is fencedkv: B's token has shut out A's, the write is refused, and A
// starts again with a new lock. At the end stand the balance that should be and
// the one that is.
//
// # Processes
//
// The program starts itself three times, and talks to the three over pipes and
// over HTTP on 127.0.0.1 with a random secret: a resource process, which has the
// account and, with --lock=memory, grants the lock too; and the two clients,
// which use the lock service directly, through its adapter. The play goes on by
// what they report. Nothing in it sleeps.
//
// When it ends, by Ctrl-C too, no process and no file is left, and on the lock
// service nothing of the run's own namespace ("fencedkv-demo-" and a random
// part): see Caveats for what cannot be removed.
//
// # Events
//
// With --json each line is an object. Its field "event" is one of
//
//	started         the service and the lease time are known to work
//	act_started     the account holds balance
//	acquiring       client asks for the lock, and waits if another has it
//	acquired        client has the lock; token is its fencing token
//	raised          client has shut out all older tokens (fenced act only)
//	read            client has read balance
//	lease_checked   client has looked at its lease; valid tells the result
//	about_to_write  client knows what to write, and has not sent it
//	stopped         client's process is stopped; how is SIGSTOP, or blocked
//	lease_expired   the service took the lock from the stopped client
//	continued       client's process goes on where it was
//	writing         client sends balance, with token in the fenced act
//	written         the store took the write
//	rejected        the store refused offered, because it knows highest
//	lease_lost      client looks at its lease again and finds it gone
//	released        client gave the lock back
//	retrying        client starts again with a new lock
//	act_ended       expected and actual balance, and lost_updates
//	summary         always last: the same for both acts, and shown
//
// "act" is unfenced or fenced, "client" A or B, "at_ms" the time since the start,
// and tokens are in their text form, such as "34@lineage~holder".
//
// # Exit status
//
//	0    shown: an update was lost without fencing and none with it
//	1    not shown
//	2    wrong usage, or a lease time that the service does not keep
//	3    the lock service is unreachable, or not fit to be used
//	130  ended by Ctrl-C or SIGTERM
//	141  the reader of its output has gone, as with "| head -1"; no message
//
// # Width
//
// The timeline takes the width of the terminal, or what COLUMNS says, up to 200
// columns. Without either, as in a pipe, it has 79. Below 80 its texts get
// shorter, and below 53 the lanes are cut off at the right.
//
// # Caveats
//
// Where no process can be stopped (Windows), client A waits by itself and renews
// its lease no longer; the timeline says so. That is --pause=block elsewhere.
//
// If the program is killed by force (SIGKILL), its processes end and its
// directory is removed all the same, but the run's namespace stays on the lock
// service. On ZooKeeper the path given with --lock is created if it is not there,
// and stays.
package main
