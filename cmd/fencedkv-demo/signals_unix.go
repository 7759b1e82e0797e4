//go:build unix

package main

import (
	"os"
	"syscall"
)

// endSignals end the play in order. SIGPIPE is among them because a reader that
// has enough ("| head") must not leave a directory behind.
var endSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE}
