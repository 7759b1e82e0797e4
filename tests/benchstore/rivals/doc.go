// Package rivals measures this project's store beside others in one run and
// says which of its bounds are met.
//
// Every contestant has the same keys: 10,000 of one resource, which are there
// before the first round and are overwritten in random order with random values
// of 100 bytes. The large file has 100,000 resources besides.
//
// # Caveats
//
// A stale writer of "good-beside-stale" tries again each time that a good one
// has written, so that both ask for as much. Beside "spinning" ones, which never
// pause, the good writers also share the processors with them, whatever the
// store does; that figure is printed and has no bound.
package rivals
