// Package history has calls of the store checked for linearizability by
// github.com/anishathalye/porcupine, after Herlihy and Wing, "Linearizability: a
// correctness condition for concurrent objects" (1990): what a call is, what a
// store promises to answer, and whether an order of the calls explains all
// answers.
package history
