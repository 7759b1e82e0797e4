// Package resource is the process that everybody writes to: one account, kept
// twice. The fenced copy lives in a fencedkv store and every write to it carries
// a token; the unfenced copy is a plain map that takes whatever comes. With
// --lock=memory the same process also grants the lock.
//
// Server is the process, Account is how a client talks to it.
package resource
