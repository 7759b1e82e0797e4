package locks

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// WaitAtMost returns a Locker that is l, except that its Acquire waits for at
// most d. Give it to Do, or to Exclusive of package fencedkv, whose own context
// bounds the work as well as the wait.
//
// After d the error of Acquire is over ErrCancelled and
// context.DeadlineExceeded, and, as always, over ErrHeld if somebody had the
// lock when last seen.
func WaitAtMost(l Locker, d time.Duration) Locker { return patience{l, d} }

type patience struct {
	Locker
	most time.Duration
}

func (p patience) Acquire(ctx context.Context, name string) (*Lease, error) {
	if p.Locker == nil {
		return nil, &Error{Op: "acquire", Name: name, Kind: ErrBadOption, Err: errors.New("the locker is nil")}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.most, waited(p.most))
	defer cancel()
	return p.Locker.Acquire(ctx, name)
}

func waited(d time.Duration) error {
	return fmt.Errorf("waited %v, which is the most: %w", d, context.DeadlineExceeded)
}
