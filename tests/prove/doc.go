// Package prove shows with real processes and real lock services what fencing
// is for. Eight client processes add one to a counter, each time under the
// lock: acquire, raise, read, compute, write, release. The counter is kept by a
// ninth process. Meanwhile the clients are stopped (SIGSTOP) and continued
// (SIGCONT) at random, each time for longer than a lease lasts.
//
// If the counter is a plain map, a client that was stopped between its read and
// its write overwrites what others have written since, and their updates are
// lost. If it is kept in the store, that write is refused: every update that was
// acknowledged is in the counter, and the history of all calls is linearizable.
//
// The clients are careful: each looks at its lease once more before it computes.
// However late that last look is, a stop can come after it.
//
// # Caveats
//
// It runs on Linux only. A run is repeated with its seed as far as the seed
// decides: when each client is stopped, and for how long.
package prove
