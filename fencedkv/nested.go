package fencedkv

import (
	"context"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
)

// nestedKey marks the contexts that a store gives to functions.
type nestedKey struct{ store *Store }

func (s *Store) nested(ctx context.Context) bool { return ctx.Value(nestedKey{s}) != nil }

// within runs a function of the caller, with a context that tells it apart.
func (s *Store) within(ctx context.Context, fn func(context.Context) error) error {
	return s.running.functions.run(func() error { return fn(context.WithValue(ctx, nestedKey{s}, true)) })
}

// running is what a store runs of its callers' code.
type running struct {
	functions callersCode // of View and Update, which have a transaction
	hooks     callersCode // after one
}

// here reports whether the calling goroutine runs any.
func (r *running) here() bool { return r.functions.here() || r.hooks.here() }

// callersCode is code of the caller while it runs, found in the stack of whoever
// it calls.
//
// Close has no context, and a function may pass another one than its own. Both
// would wait for the function that calls them, a read where the file has to be
// mapped anew before it can begin. Go has no name for a goroutine, but it tells
// which functions are in its stack. So each callersCode has a number, and calls
// what it runs through frames that spell it in bits: begin, then bit0 and bit1 from
// the lowest bit to the highest, then end. It decides nothing but whether a call
// that would wait for ever gets an error, and while nothing runs nobody asks.
type callersCode struct {
	running atomic.Int64
	number  atomic.Uint64 // 0 until something runs
}

var lastNumber atomic.Uint64

func (c *callersCode) run(fn func() error) error {
	c.running.Add(1)
	defer c.running.Add(-1)
	if c.number.Load() == 0 {
		c.number.CompareAndSwap(0, lastNumber.Add(1))
	}
	return begin(c.number.Load(), fn)
}

// here reports whether the calling goroutine runs it.
func (c *callersCode) here() bool {
	if c.running.Load() == 0 {
		return false
	}
	e, number := entries(), uint64(0)
	var stack [64]uintptr
	for skip := 2; ; skip += len(stack) {
		n := runtime.Callers(skip, stack[:])
		for _, pc := range stack[:n] {
			f := runtime.FuncForPC(pc - 1) // pc is where the call returns to
			if f == nil {
				continue
			}
			switch f.Entry() {
			case e.end:
				number = 0
			case e.bit0:
				number <<= 1
			case e.bit1:
				number = number<<1 | 1
			case e.begin:
				if number == c.number.Load() {
					return true
				}
			}
		}
		if n < len(stack) {
			return false
		}
	}
}

// None of these is compiled into another one: each has a frame of its own.

//go:noinline
func begin(number uint64, fn func() error) error { return spell(number, fn) }

//go:noinline
func spell(number uint64, fn func() error) error {
	switch {
	case number == 0:
		return end(fn)
	case number&1 == 0:
		return bit0(number>>1, fn)
	default:
		return bit1(number>>1, fn)
	}
}

//go:noinline
func bit0(rest uint64, fn func() error) error { return spell(rest, fn) }

//go:noinline
func bit1(rest uint64, fn func() error) error { return spell(rest, fn) }

//go:noinline
func end(fn func() error) error { return fn() }

// entries are the addresses of those that are looked for.
var entries = sync.OnceValue(func() (e struct{ begin, bit0, bit1, end uintptr }) {
	e.begin, e.end = reflect.ValueOf(begin).Pointer(), reflect.ValueOf(end).Pointer()
	e.bit0, e.bit1 = reflect.ValueOf(bit0).Pointer(), reflect.ValueOf(bit1).Pointer()
	return e
})
