//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// endSignals end the play in order.
var endSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// catchPipe makes a write to a pipe without a reader an error. The signal that
// goes with it would end the program before it has cleaned up.
func catchPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// readerGone tells whether a write failed because its pipe has no reader.
func readerGone(err error) bool { return errors.Is(err, syscall.EPIPE) }
