package fencedkv

import (
	"context"
	"sync"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// Held is a resource whose lock is held, within the function of Exclusive. It
// writes with the token of the lease and may be used from several goroutines.
//
// A write is not applied if the lease has been lost before its commit begins;
// its error is then over locks.ErrLost. The store would refuse it only once the
// next holder has come. After the function of Exclusive has returned, every
// method that can returns ErrTxDone.
type Held struct {
	resource *Resource
	lease    *locks.Lease

	mu     sync.Mutex
	done   bool
	flying sync.WaitGroup
}

// Token returns the token of the lease.
func (h *Held) Token() fence.Token {
	if h == nil || h.lease == nil {
		return fence.Token{}
	}
	return h.lease.Token()
}

// Lease returns the lease, for its deadline.
func (h *Held) Lease() *locks.Lease {
	if h == nil {
		return nil
	}
	return h.lease
}

// Put is Resource.Put with the token of the lease.
func (h *Held) Put(ctx context.Context, key, value []byte) error {
	return h.write(ctx, func(ctx context.Context) error { return h.resource.Put(ctx, h.Token(), key, value) })
}

// Delete is Resource.Delete with the token of the lease.
func (h *Held) Delete(ctx context.Context, key []byte) error {
	return h.write(ctx, func(ctx context.Context) error { return h.resource.Delete(ctx, h.Token(), key) })
}

// Update is Resource.Update with the token of the lease.
func (h *Held) Update(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return h.write(ctx, func(ctx context.Context) error { return h.resource.Update(ctx, h.Token(), fn) })
}

// Get is Resource.Get. Because Exclusive has raised the mark, what it returns is
// changed by nobody but this holder, until a higher token arrives.
func (h *Held) Get(ctx context.Context, key []byte) (value []byte, err error) {
	err = h.during(func() error {
		value, err = h.resource.Get(ctx, key)
		return err
	})
	return value, err
}

// View is Resource.View.
func (h *Held) View(ctx context.Context, fn func(ctx context.Context, tx *ReadTx) error) error {
	return h.during(func() error { return h.resource.View(ctx, fn) })
}

// Highest is Resource.Highest.
func (h *Held) Highest(ctx context.Context) (m fence.Mark, err error) {
	err = h.during(func() error {
		m, err = h.resource.Highest(ctx)
		return err
	})
	return m, err
}

// during runs a call that finish waits for.
func (h *Held) during(call func() error) error {
	if h == nil || h.lease == nil {
		return ErrTxDone
	}
	h.mu.Lock()
	if h.done {
		h.mu.Unlock()
		return ErrTxDone
	}
	h.flying.Add(1)
	h.mu.Unlock()
	defer h.flying.Done()
	return call()
}

// write runs a call with a context that also ends with the lease.
func (h *Held) write(ctx context.Context, call func(context.Context) error) error {
	if ctx == nil {
		return errNilContext
	}
	return h.during(func() error {
		lease := h.lease.Context()
		inner, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(lease, func() { cancel(context.Cause(lease)) })()
		return call(&leaseContext{Context: inner, parent: ctx, lease: lease, cancel: cancel})
	})
}

// finish refuses further calls and waits for those that run.
func (h *Held) finish() {
	h.mu.Lock()
	h.done = true
	h.mu.Unlock()
	h.flying.Wait()
}

// leaseContext asks the lease, which looks at the clock. The lease's end reaches
// a derived context only once the runtime's timers have run, which in a process
// that was stopped is too late. Its parent is asked for the same reason: it may
// be that of another lease.
type leaseContext struct {
	context.Context
	parent context.Context
	lease  context.Context
	cancel context.CancelCauseFunc
}

func (c *leaseContext) Err() error {
	if err := c.parent.Err(); err != nil {
		return err
	}
	if c.lease.Err() != nil {
		c.cancel(context.Cause(c.lease))
	}
	return c.Context.Err()
}
