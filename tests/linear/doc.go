// Package linear records histories of concurrent calls of the store and has
// them checked for linearizability by github.com/anishathalye/porcupine, after
// Herlihy and Wing, "Linearizability: a correctness condition for concurrent
// objects" (1990).
package linear
