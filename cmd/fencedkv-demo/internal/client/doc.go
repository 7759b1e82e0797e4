// Package client is a process that withdraws money: it takes the lock, reads
// the balance and writes back what is left. It does what careful programs do,
// down to a last look at its lease before it writes. That is not enough, and
// the gap between this look and the write is what the demonstration is about.
package client
