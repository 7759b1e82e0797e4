// Package model is Redlock with fencing tokens as a state machine: one server's part
// as a function, [Step], and an exhaustive search through everything that three
// servers and up to three clients may do, with locks that run out at any moment
// and messages that are late, lost or doubled, in any order. It knows no clocks.
//
// The promise that it checks is that no two grants have the same number, and that
// a client that began after a grant has a higher one.
package model
