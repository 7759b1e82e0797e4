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
	defer s.running.functions.add()()
	return fn(context.WithValue(ctx, nestedKey{s}, true))
}

// running is what a store runs of its callers' code.
type running struct {
	functions goroutines // of View and Update, which have a transaction
	hooks     goroutines // after one
}

// here reports whether the calling goroutine runs any.
func (r *running) here() bool { return r.functions.here() || r.hooks.here() }

// goroutines is a set of those that run code of the caller.
//
// Close has no context, and a function may pass another one than its own. Both
// would wait for the function that calls them, a read where the file has to be
// mapped anew before it can begin, so they are recognised by the goroutine. Go has
// no supported way to name a goroutine; its number in a stack trace has had one
// form since Go 1.0. It decides nothing but whether a call that would wait for ever
// gets an error, and while no function runs nobody asks.
type goroutines struct {
	count atomic.Int64
	mu    sync.Mutex
	ids   map[uint64]int
}

// add notes that the calling goroutine is one, until the function that it returns
// is called.
func (g *goroutines) add() (remove func()) {
	id := goroutineID()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids == nil {
		g.ids = make(map[uint64]int)
	}
	g.ids[id]++
	g.count.Add(1)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.count.Add(-1)
		if g.ids[id]--; g.ids[id] == 0 {
			delete(g.ids, id)
		}
	}
}

// here reports whether the calling goroutine is one of them.
func (g *goroutines) here() bool {
	if g.count.Load() == 0 {
		return false
	}
	id := goroutineID()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ids[id] > 0
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
