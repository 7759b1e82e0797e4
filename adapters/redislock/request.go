package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
)

// soon is how long a request may keep the goroutine of its caller, and with that
// how late the end of a context is noticed.
const soon = 50 * time.Millisecond

// call runs request within Options.RequestTimeout, which may run it twice: all
// requests can be repeated.
//
// A client notices the end of a context at its deadline only, if at all. So a
// request should have a goroutine of its own, which can be left to itself; the
// Locker's Close waits for it. But to start one and wait for it takes as long as
// half a request to a server that is near. As long as the server answers soon, and
// the client keeps deadlines, there is none.
func call[T any](ctx context.Context, l *Locker, request func(context.Context) (T, error)) (T, error) {
	left := l.requestTimeout
	if l.keepsDeadlines && !l.slow.Load() {
		began := time.Now()
		short, cancel := context.WithTimeout(ctx, min(soon, left))
		value, err := request(short)
		if err != nil {
			overdue(short)
		}
		late := err != nil && short.Err() != nil && ctx.Err() == nil
		cancel()
		if err != nil && !late {
			l.reroute(ctx)
		}
		if left -= time.Since(began); !late || left <= 0 {
			return value, err
		}
		l.slow.Store(true)
	}
	return callAside(ctx, l, left, request)
}

// callAside is call with a goroutine for the request.
func callAside[T any](ctx context.Context, l *Locker, left time.Duration, request func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, left)
	done := make(chan result, 1)
	started := l.group.Go(func() {
		defer cancel()
		began := time.Now()
		value, err := request(ctx)
		switch {
		case err != nil:
			l.reroute(ctx)
		case time.Since(began) < soon/2:
			l.slow.Store(false)
		}
		done <- result{value, err}
	})
	if !started {
		cancel()
		return *new(T), &locks.Error{Op: "request", Kind: locks.ErrClosed}
	}
	select {
	case r := <-done:
		if r.err != nil {
			overdue(caller)
		}
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err
	default:
		return *new(T), fmt.Errorf("no reply within %v: %w", l.requestTimeout, context.Cause(ctx))
	}
}

// overdue waits for the end of a context whose deadline has passed. The timer of a
// connection's deadline may be noticed before that of the context.
func overdue(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
}

// unknownCommand is for redis.HasErrorPrefix, which does not want the "ERR ".
const unknownCommand = "unknown command"

// hopeless reports whether asking again would give the same answer.
func hopeless(err error) bool {
	if errors.Is(err, redis.ErrClosed) || errors.Is(err, locks.ErrUnsupported) ||
		errors.Is(err, locks.ErrBadOption) || errors.Is(err, locks.ErrClosed) {
		return true
	}
	for _, prefix := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE", "DENIED", "CROSSSLOT", unknownCommand, "DB index"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// failure is the error of an operation whose request failed with err.
func failure(op, name string, err error) error {
	kind := locks.ErrUnreachable
	for _, k := range []error{locks.ErrUnsupported, locks.ErrBadOption, locks.ErrClosed} {
		if errors.Is(err, k) {
			kind = k
		}
	}
	if e, ok := errors.AsType[*locks.Error](err); ok && errors.Is(e.Kind, kind) {
		err = e.Err
	}
	return &locks.Error{Op: op, Name: name, Kind: kind, Err: err}
}
