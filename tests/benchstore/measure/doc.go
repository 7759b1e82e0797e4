// Package measure takes the figures of a benchmark on a machine that is never
// quiet: Run counts what groups of workers do at the same time, Rounds repeats
// cases in shuffled order so that contestants share every disturbance, and
// Paired compares two contestants round by round.
//
// # Caveats
//
// A round lasts longer than planned where a worker waits long for its last
// operation, which is always finished and counted. The time after that is
// shared out anew, so a run takes about as long as asked, not exactly.
package measure
