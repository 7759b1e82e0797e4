// Package lockserver serves memlock, which is a lock within one process, to
// other processes over loopback: Register is the server's end, and Backend is
// what a memlock.Locker in another process uses.
//
// # Caveats
//
// It is as durable as the process that serves it: not at all. It is there so
// that the demonstration needs nothing but Go.
package lockserver
