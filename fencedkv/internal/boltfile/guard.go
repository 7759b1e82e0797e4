package boltfile

import (
	"fmt"
	"runtime/debug"
)

// Guard runs fn, which works on the bbolt file at path, and returns its error.
// A panic of bbolt on a corrupt page, and a memory fault (the file was truncated
// while open, a page number points outside it, the disk cannot read a page),
// becomes a *CorruptError. runtime.Goexit passes through.
//
// Only the calling goroutine is guarded. Byte slices that bbolt returned point
// into the file: read and copy them inside fn. Panics of fn's own code are
// reported as corruption too, so code of the user does not belong into it; see
// GuardAround. Safe for concurrent use.
func Guard(path string, fn func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	returned := false
	defer func() {
		debug.SetPanicOnFault(before)
		if returned {
			return
		}
		// nil after runtime.Goexit, which then goes on.
		if p := recover(); p != nil {
			err = recovered(path, p)
		}
	}()
	err = fn()
	returned = true
	return err
}

// GuardAround is Guard for a function that calls code of the user. That code
// goes through user, which returns its error. A panic or runtime.Goexit in it
// passes through GuardAround untouched, with its own value and stack, running
// deferred calls (bbolt's rollbacks among them) on its way.
func GuardAround(path string, fn func(user func(func() error) error) error) (err error) {
	before := debug.SetPanicOnFault(true)
	returned, inUser := false, false
	defer func() {
		debug.SetPanicOnFault(before)
		if returned || inUser {
			return
		}
		if p := recover(); p != nil {
			err = recovered(path, p)
		}
	}()
	err = fn(func(code func() error) error {
		inUser = true
		debug.SetPanicOnFault(before)
		e := code()
		debug.SetPanicOnFault(true)
		inUser = false
		return e
	})
	returned = true
	return err
}

// recovered must be called by the deferred function that recovered p, while the
// stack of the panic is still there.
func recovered(path string, p any) *CorruptError {
	e := &CorruptError{Path: path, Stack: debug.Stack()}
	e.Cause, _ = p.(error)
	if fault, ok := p.(interface{ Addr() uintptr }); ok {
		e.Detail = fmt.Sprintf("memory fault at address %#x: a page cannot be read; "+
			"the file was cut short while open, the disk failed, or a page number is wrong", fault.Addr())
	} else {
		e.Detail = fmt.Sprintf("bbolt stopped: %v", p)
	}
	return e
}
