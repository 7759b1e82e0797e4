// Package faultfs is a FUSE file system that passes on to a directory, tells of
// every change and every sync, and fails those that it is told to fail; and a
// model of the device below it, which holds what was synced and perhaps some of
// what was not.
//
// A process must not use what it has mounted itself: a goroutine that waits in a
// page fault for its own file system would stop the server's.
package faultfs
