// Package contestant gives every lock library the same face, so that a benchmark
// treats all of them alike: its own connection for each contender, as if that
// were a machine of its own, and the same lease time.
package contestant
