package locks

import (
	"context"
	"errors"
	"reflect"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Do acquires the lock, runs fn and releases the lock, also if fn panics or
// calls runtime.Goexit.
//
// The context given to fn has the values of ctx, carries the token, and ends
// with ctx or with the lease, whichever comes first; its Err method looks at
// the clock, as that of Lease.Context does. When ctx ends, renewal ends, so that
// an fn that does not return cannot hold the lock for ever.
//
// Do returns fn's error, joined with an error over ErrLost if the lease was lost
// before fn returned, or with the error of the release.
func Do(ctx context.Context, locker Locker, name string, fn func(ctx context.Context, lease *Lease) error) (err error) {
	// Also the nil pointer that comes with an error of Dial which nobody looked at.
	if v := reflect.ValueOf(locker); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return &Error{Op: "do", Name: name, Kind: ErrBadOption, Err: errors.New("the locker is nil")}
	}
	if ctx == nil {
		return &Error{Op: "do", Name: name, Kind: ErrBadOption, Err: errors.New("the context is nil")}
	}
	if fn == nil {
		return &Error{Op: "do", Name: name, Kind: ErrBadOption, Err: errors.New("the function is nil")}
	}
	lease, err := locker.Acquire(ctx, name)
	if err != nil {
		return err
	}
	if lease == nil {
		return &Error{Op: "do", Name: name, Err: errors.New("the locker returned neither a lease nor an error")}
	}
	defer func() {
		if released := lease.Release(ctx); released != nil && !errors.Is(err, released) {
			err = errors.Join(err, released)
		}
	}()
	stop := context.AfterFunc(ctx, lease.stopRenewing)
	defer stop()

	work, cancel := lease.within(ctx)
	defer cancel()
	return fn(work, lease)
}

// within returns a context that ends with ctx or with the lease.
func (l *Lease) within(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(fence.NewContext(ctx, l.Token()))
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return &workContext{Context: inner, parent: ctx, lease: l, cancel: cancel}, func() {
		stop()
		cancel(context.Canceled)
	}
}

// workContext is leaseContext for a context with another parent. That may be of
// another lease, so it is asked as well.
type workContext struct {
	context.Context
	parent context.Context
	lease  *Lease
	cancel context.CancelCauseFunc
}

func (c *workContext) Err() error {
	if c.parent.Err() == nil && c.lease.ctx.Err() != nil {
		c.cancel(context.Cause(c.lease.ctx))
	}
	return c.Context.Err()
}
