package memlock

import (
	"context"
	"errors"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// tries is how often TryAcquire sends a request that is not answered.
const tries = 3

func (l *Locker) acquire(ctx context.Context, name string, queue bool) (*locks.Lease, error) {
	if err := locks.CheckName(name); err != nil {
		return nil, err
	}
	end, err := l.group.Begin("acquire", name)
	if err != nil {
		return nil, err
	}
	defer end()

	work, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(l.closing, cancel)
	defer stop()

	a := Attempt{Name: name, TTL: l.ttl, Queue: queue}
	var seen error
	for {
		a.ID = locks.NewHolder()
		token, sent, err := l.take(work, a, &seen)
		switch {
		case err == nil:
			return l.lease(ctx, a, token, sent)
		case errors.Is(err, locks.ErrLost):
			// The entry was removed by hand or ran out while the server was
			// away. The place in the queue is lost; the wait goes on.
			pause(work, min(10*time.Millisecond, l.ttl/10))
			continue
		case !errors.Is(err, locks.ErrHeld):
			l.withdraw(a)
		}
		switch {
		case l.closing.Err() != nil:
			return nil, &locks.Error{Op: "acquire", Name: name, Kind: locks.ErrClosed}
		case ctx.Err() != nil:
			return nil, locks.Cancelled(ctx, name, seen)
		}
		return nil, err
	}
}

// take asks for the lock until there is a definite answer or ctx ends. sent is
// the time just before the request that was answered with a grant.
func (l *Locker) take(ctx context.Context, a Attempt, seen *error) (t fence.Token, sent time.Time, err error) {
	for n := 1; ; n++ {
		if err = ctx.Err(); err != nil {
			return t, sent, err
		}
		// The request after a wait is also the check that the entry is there
		// and one's own, and what the deadline counts from.
		sent = time.Now()
		err = bounded(ctx, l.requestTimeout(), func(ctx context.Context) (err error) {
			t, err = l.backend.Take(ctx, a)
			return err
		})
		switch {
		case err == nil || definite(err):
			return t, sent, err
		case errors.Is(err, locks.ErrHeld):
			*seen = locks.ErrHeld
			if !a.Queue {
				return t, sent, err
			}
			n = 0
			err = bounded(ctx, l.ttl/3, func(ctx context.Context) error { return l.backend.Wait(ctx, a.Name, a.ID) })
			if err == nil || definite(err) || errors.Is(err, context.DeadlineExceeded) {
				continue // Take tells what has become of the entry
			}
		}
		if ctx.Err() != nil {
			return t, sent, err
		}
		*seen = &locks.Error{Op: "acquire", Name: a.Name, Kind: locks.ErrUnreachable, Err: err}
		if !a.Queue && n == tries {
			return t, sent, *seen
		}
		pause(ctx, min(time.Duration(n)*10*time.Millisecond, l.ttl/4))
	}
}

// lease turns a grant into a lease.
func (l *Locker) lease(ctx context.Context, a Attempt, t fence.Token, sent time.Time) (*locks.Lease, error) {
	lease, _, err := l.group.NewLease(ctx, locks.Grant{
		Name:           a.Name,
		Token:          t,
		Sent:           sent,
		Validity:       locks.Validity(l.ttl),
		Renew:          func(ctx context.Context) error { return l.backend.Renew(ctx, a.Name, a.ID, l.ttl) },
		MaxHold:        l.maxHold,
		Release:        func(ctx context.Context) error { return l.backend.Release(ctx, a.Name, a.ID) },
		ReleaseTimeout: min(5*time.Second, l.ttl),
		ReleaseWindow:  l.ttl,
		Warn:           l.warn,
	})
	return lease, err
}

// withdraw removes the entry of an attempt that ended without an answer. It
// goes on in the background while the server may still have the entry, and
// waits a moment for it, because mostly nothing is left then.
func (l *Locker) withdraw(a Attempt) {
	gone := make(chan struct{})
	l.group.Go(func() {
		defer close(gone)
		ctx, cancel := context.WithTimeout(context.Background(), l.ttl)
		defer cancel()
		for ctx.Err() == nil {
			err := bounded(ctx, l.requestTimeout(), func(ctx context.Context) error {
				return l.backend.Release(ctx, a.Name, a.ID)
			})
			if err == nil || errors.Is(err, locks.ErrLost) {
				return
			}
			l.warn("cleanup", err)
			pause(ctx, max(l.ttl/20, time.Millisecond))
		}
	})
	select {
	case <-gone:
	case <-time.After(min(l.ttl/10, 100*time.Millisecond)):
	}
}

func (l *Locker) requestTimeout() time.Duration { return l.ttl / 3 }

// definite reports whether the server has decided, so that asking again with
// the same id cannot change the answer.
func definite(err error) bool {
	return errors.Is(err, locks.ErrLost) || errors.Is(err, locks.ErrBadName) ||
		errors.Is(err, locks.ErrBadOption) || errors.Is(err, locks.ErrUnsupported)
}

func bounded(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return f(ctx)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
