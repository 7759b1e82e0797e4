package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

const (
	// withdrawGrace is how long a failing Acquire waits for its own cleanup,
	// so that with a healthy server nothing is left when it returns.
	withdrawGrace = 100 * time.Millisecond

	// lookouts is how many waiters look when the holder's lease or a
	// reservation has run out, one after the other: the number of requests per
	// handover must not grow with the number of waiters.
	lookouts = 8
)

// attempt is one call of Acquire or TryAcquire. Its id becomes the holder of
// the grant, and all its requests are idempotent by it.
type attempt struct {
	locker *Locker
	name   string
	keys   keys
	id     string
	caller context.Context
	ctx    context.Context // ends with caller or with the Locker
	traces bool            // the server may have something of this attempt

	// Copies of the take that were sent, and those that were answered.
	sent     atomic.Int64
	answered int64

	arrival string // the place among the waiters, "0" until the server has told it
	missed  bool   // its turn came and passed before it asked
}

func (a *attempt) acquire() (*locks.Lease, error) {
	l := a.locker
	heard := l.wakes.early(a.id)
	defer func() { l.wakes.leave(heard) }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()

	var seen error
	pause := l.options.retryMin()
	for {
		asked := time.Now()
		ans, sent, err := a.ask(a.ctx, l.options.patience())
		if seen == nil {
			seen = a.unanswered(asked, err)
		}
		var delay time.Duration
		switch {
		case err == nil && ans.status == "granted" && time.Since(sent) < locks.Validity(l.ttl):
			return a.lease(ans, sent)
		case err == nil && ans.status == "held":
			seen, pause = locks.ErrHeld, l.options.retryMin()
			a.arrival, a.missed = ans.arrival, a.missed || ans.missed
			if heard == nil {
				heard = l.wakes.join(a.id)
			}
			delay = a.pollDelay(ans)
		case a.ctx.Err() != nil:
			return nil, a.ended(seen)
		case err != nil && hopeless(err):
			a.withdraw()
			return nil, failure("acquire", a.name, err)
		case err != nil:
			seen = failure("acquire", a.name, err)
			delay = jitter(pause)
			pause = min(2*pause, l.options.pollInterval())
		case ans.status == "granted": // the reply came too late; ask again, which starts the time anew
			continue
		default: // over: a repeated request had its grant and it has passed
			l.wakes.leave(heard)
			a.id, a.arrival = l.newID(), "0"
			heard = l.wakes.early(a.id)
			continue
		}
		if !a.sleep(timer, delay, heard) {
			return nil, a.ended(seen)
		}
	}
}

// unanswered is the error of a request that had no reply when the attempt ended, if
// it had waited for longer than a server takes that is well.
func (a *attempt) unanswered(asked time.Time, err error) error {
	if err == nil || hopeless(err) || a.ctx.Err() == nil || time.Since(asked) < soon {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = fmt.Errorf("no reply within %v", time.Since(asked).Round(time.Millisecond))
	}
	return failure("acquire", a.name, err)
}

// sleep waits for the delay or for the message that it is this attempt's turn.
// It returns false if the attempt is over.
func (a *attempt) sleep(timer *time.Timer, delay time.Duration, heard *waiter) bool {
	var ring chan time.Duration
	if heard != nil {
		ring = heard.ring
	}
	for {
		timer.Reset(delay)
		select {
		case <-timer.C:
			return true
		case delay = <-ring:
			if delay == 0 {
				return true
			}
		case <-a.ctx.Done():
			return false
		}
	}
}

// pollDelay is when a waiter asks again if no message comes. One that messages do
// not reach, or not in time, asks within each claim time once it may be next.
func (a *attempt) pollDelay(ans answer) time.Duration {
	l := a.locker
	var delay time.Duration
	switch {
	case ans.rank > 1:
		delay = jitter(l.options.idlePollInterval())
	case a.missed || !l.wakes.hears():
		delay = min(l.options.pollInterval(), l.claim/3)
	default:
		delay = jitter(l.options.pollInterval())
	}
	if ans.left >= 0 && ans.rank < lookouts {
		delay = min(delay, ans.left+time.Millisecond+time.Duration(ans.rank)*l.claim/10)
	}
	return delay
}

func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

func (a *attempt) try() (*locks.Lease, error) {
	l := a.locker
	ctx, cancel := context.WithTimeout(a.ctx, l.requestTimeout)
	defer cancel()
	asked := time.Now()
	ans, sent, err := a.ask(ctx, 0)
	switch {
	case err == nil && ans.status == "granted" && time.Since(sent) < locks.Validity(l.ttl):
		return a.lease(ans, sent)
	case err == nil && ans.status == "held":
		return nil, &locks.Error{Op: "acquire", Name: a.name, Kind: locks.ErrHeld}
	case a.ctx.Err() != nil:
		return nil, a.ended(a.unanswered(asked, err))
	case err == nil:
		err = fmt.Errorf("the grant had run out before the reply came, after %v", time.Since(sent))
	}
	a.withdraw()
	return nil, failure("acquire", a.name, err)
}

// ask sends one take. The grant counts from sent, which is before the request;
// each request of an attempt sets the server's time anew.
func (a *attempt) ask(ctx context.Context, patience time.Duration) (ans answer, sent time.Time, err error) {
	l := a.locker
	if err := l.ready(ctx); err != nil {
		return answer{}, time.Time{}, err
	}
	sent = time.Now()
	ans, err = call(ctx, l, func(ctx context.Context) (answer, error) {
		a.sent.Add(1)
		return l.take(ctx, a.keys, a.id, a.arrival, patience)
	})
	if err != nil || patience > 0 || ans.status == "granted" {
		a.traces = true
	}
	if err == nil {
		a.answered++
	}
	return ans, sent, err
}

func (a *attempt) lease(ans answer, sent time.Time) (*locks.Lease, error) {
	l := a.locker
	grant := ans.number + " " + a.id
	lease, _, err := l.group.NewLease(a.caller, locks.Grant{
		Name:           a.name,
		Token:          fence.Token{Lineage: lineage(l.prefix, a.name), Seq: ans.seq, Holder: a.id},
		Sent:           sent,
		Validity:       locks.Validity(l.ttl),
		Renew:          func(ctx context.Context) error { return l.renew(ctx, a.keys, grant) },
		RenewEvery:     l.ttl / 3,
		RenewTimeout:   min(l.requestTimeout, l.ttl/3),
		MaxHold:        l.options.maxHold(),
		Release:        func(ctx context.Context) error { return a.release(ctx, grant) },
		ReleaseTimeout: l.requestTimeout,
		ReleaseWindow:  l.ttl,
		Warn: func(what string, err error) {
			l.log.Warn("redislock: "+what, "lock", a.name, "error", err)
		},
	})
	return lease, err
}

// release frees the lock. A copy of the take that was not answered may arrive later
// than that, and is then to find that the attempt is over.
func (a *attempt) release(ctx context.Context, grant string) error {
	l := a.locker
	err := l.release(ctx, a.keys, grant)
	if known := err == nil || errors.Is(err, locks.ErrLost); known && a.sent.Load() > a.answered {
		if _, err := l.withdraw(ctx, a.keys, a.id); err != nil {
			l.log.Debug("redislock: late copies of a take are not shut out", "lock", a.name, "error", err)
		}
	}
	return err
}

// ended withdraws an attempt whose context is done and returns its error.
func (a *attempt) ended(seen error) error {
	// The last answer may have been on its way when the context ended.
	if a.withdraw() {
		seen = locks.ErrHeld
	}
	if a.caller.Err() == nil {
		return &locks.Error{Op: "acquire", Name: a.name, Kind: locks.ErrClosed, Err: seen}
	}
	return locks.Cancelled(a.caller, a.name, seen)
}

// withdraw removes what the server may have of this attempt, in the background
// if that takes long, and tells whether another was seen to hold the lock. What
// cannot be removed within TTL is forgotten by the server itself: a lock after
// TTL, a waiter after twice as long.
func (a *attempt) withdraw() (held bool) {
	if !a.traces {
		return false
	}
	seen := make(chan bool, 1)
	ctx := context.WithoutCancel(a.caller)
	if !a.locker.group.Go(func() { seen <- a.clean(ctx) }) {
		return false
	}
	grace := time.NewTimer(withdrawGrace)
	defer grace.Stop()
	select {
	case held = <-seen:
	case <-grace.C:
	}
	return held
}

// clean asks until the server has confirmed or has forgotten by itself.
func (a *attempt) clean(ctx context.Context) (held bool) {
	l := a.locker
	pause := l.options.retryMin()
	for begun := time.Now(); ; {
		held, err := l.withdraw(ctx, a.keys, a.id)
		if err == nil {
			return held
		}
		if hopeless(err) || time.Since(begun) > l.ttl {
			l.log.Warn("redislock: cleanup of an attempt; the server forgets it by itself", "lock", a.name, "error", err)
			return false
		}
		time.Sleep(pause)
		pause = min(2*pause, l.options.pollInterval())
	}
}
