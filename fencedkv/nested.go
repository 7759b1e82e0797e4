package fencedkv

import (
	"bytes"
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// nestedKey marks the contexts that a store gives to functions.
type nestedKey struct{ store *Store }

func (s *Store) nested(ctx context.Context) bool { return ctx.Value(nestedKey{s}) != nil }

// within runs a function of the caller, with a context that tells it apart.
func (s *Store) within(ctx context.Context, fn func(context.Context) error) error {
	defer s.running.add()()
	return fn(context.WithValue(ctx, nestedKey{s}, true))
}

// functions is the set of goroutines that run a function of a store.
//
// Close has no context, and a function may pass another one than its own. Both
// would wait for the function that calls them, so they are recognised by the
// goroutine. Go has no supported way to name a goroutine; its number in a stack
// trace has had one form since Go 1.0. It decides nothing but whether a call
// that would wait for ever gets an error, and while no function runs nobody
// asks.
type functions struct {
	count atomic.Int64
	mu    sync.Mutex
	ids   map[uint64]int
}

// add notes that the calling goroutine runs a function, until the function that
// it returns is called.
func (f *functions) add() (remove func()) {
	id := goroutineID()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil {
		f.ids = make(map[uint64]int)
	}
	f.ids[id]++
	f.count.Add(1)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.count.Add(-1)
		if f.ids[id]--; f.ids[id] == 0 {
			delete(f.ids, id)
		}
	}
}

// here reports whether the calling goroutine runs a function.
func (f *functions) here() bool {
	if f.count.Load() == 0 {
		return false
	}
	id := goroutineID()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids[id] > 0
}

// goroutineID returns the number in "goroutine 7 [running]:", 0 if there is none.
func goroutineID() uint64 {
	buf := make([]byte, 64)
	buf = buf[:runtime.Stack(buf, false)]
	buf = bytes.TrimPrefix(buf, []byte("goroutine "))
	digits, _, _ := bytes.Cut(buf, []byte(" "))
	id, _ := strconv.ParseUint(string(digits), 10, 64)
	return id
}
