package main

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// endSignals end the play in order.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

func catchPipe() {}

// readerGone tells whether a write failed because its pipe has no reader.
func readerGone(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}
