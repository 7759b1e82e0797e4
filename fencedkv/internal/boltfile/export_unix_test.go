//go:build unix

package boltfile

// Uninterrupted repeats a call that a signal has ended.
var Uninterrupted = uninterrupted
