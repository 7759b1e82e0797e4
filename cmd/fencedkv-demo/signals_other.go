//go:build !unix

package main

import (
	"os"
	"syscall"
)

// endSignals end the play in order.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}
