package redislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
)

// call runs request within Options.RequestTimeout. A client may ignore its
// context, so a request that is late is left to itself; the Locker's Close
// waits for it.
func call[T any](ctx context.Context, l *Locker, request func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, l.requestTimeout)
	done := make(chan result, 1)
	started := l.group.Go(func() {
		defer cancel()
		value, err := request(ctx)
		if err != nil {
			l.reroute(ctx)
		}
		done <- result{value, err}
	})
	if !started {
		cancel()
		return *new(T), &locks.Error{Op: "request", Kind: locks.ErrClosed}
	}
	select {
	case r := <-done:
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
