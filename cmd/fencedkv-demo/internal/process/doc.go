// Package process runs the parts of the demonstration as processes of their
// own: the program starts itself again in another role and talks to it in lines
// of JSON over the child's standard input and output.
//
// A child can be stopped where it stands and continued, and it never outlives
// its parent: it ends when its standard input ends, and on Linux a client is
// also killed by the kernel, because a stopped process reads nothing.
//
// # Caveats
//
// On other Unix systems a child that is stopped while its parent is killed is
// woken by the kernel with SIGHUP, since its process group has lost its parent
// (POSIX, exit), and ends by that. Windows has no way to stop a process.
package process
