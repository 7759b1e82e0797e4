package redislock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// lastGrace is how long a failing Acquire waits for its own cleanup, so that with
// healthy servers nothing is left when it returns.
const lastGrace = 100 * time.Millisecond

// redlockAttempt is one call of Acquire or TryAcquire. Its id becomes the holder
// of the grant, and all its requests are idempotent by it. A round that has taken
// something and not enough gives it back, and the next one has another id.
type redlockAttempt struct {
	redlock *Redlock
	name    string
	keys    redlockKeys
	id      string
	caller  context.Context
	ctx     context.Context // ends with caller or with the Redlock
	asked   bool            // the servers may have something of this id
	arrival time.Time       // orders the waiters; the same on all servers
	waiter  string          // the id among them; empty until it waits
}

func (a *redlockAttempt) acquire() (*locks.Lease, error) {
	r := a.redlock
	var heard *redlockWaiter
	defer func() {
		if heard != nil {
			r.wakes.leave(heard)
		}
	}()
	a.arrival = time.Now()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()

	var seen error
	pause := r.options.retryMin()
	for {
		var delay time.Duration
		o, err := a.ask(heard)
		switch {
		case err == nil && o.seq > 0:
			return a.lease(o)
		case a.ctx.Err() != nil:
			return nil, a.ended(seen)
		case err != nil && hopeless(err):
			a.withdraw(r.wakeup(), lastGrace)
			return nil, failure("acquire", a.name, err)
		case err != nil:
			seen = failure("acquire", a.name, err)
			delay, pause = r.backOff(pause)
		case r.pointless(o.errs):
			a.withdraw(r.wakeup(), lastGrace)
			return nil, r.failure("acquire", a.name, o.errs)
		default:
			if o.taken() {
				a.startAnew()
			}
			switch {
			case len(o.held) >= r.majority():
				seen, pause = locks.ErrHeld, r.options.retryMin()
				delay = r.pollDelay(o)
			case o.answered() >= r.majority():
				seen = locks.ErrHeld
				delay, pause = r.backOff(pause)
			default:
				seen = r.failure("acquire", a.name, o.errs)
				delay, pause = r.backOff(pause)
			}
			if heard == nil && len(o.held) > 0 {
				heard = r.wakes.join()
				a.waiter = heard.id
			}
		}
		if !a.sleep(timer, delay, heard) {
			return nil, a.ended(seen)
		}
	}
}

// ask makes one round.
func (a *redlockAttempt) ask(heard *redlockWaiter) (outcome, error) {
	if err := a.redlock.ready(a.ctx); err != nil {
		return outcome{}, err
	}
	if heard != nil {
		heard.asks()
	}
	return a.round(a.waiter), nil
}

// backOff is a random pause, so that clients which have split the servers among
// themselves do not do so again.
func (r *Redlock) backOff(pause time.Duration) (delay, next time.Duration) {
	return rand.N(pause) + time.Microsecond, min(2*pause, r.options.pollInterval())
}

// pointless reports whether so many servers fail in a way that would not change
// that no majority is left.
func (r *Redlock) pointless(errs []error) bool {
	n := 0
	for _, err := range errs {
		if hopeless(err) {
			n++
		}
	}
	return n > len(r.nodes)-r.majority()
}

// pollDelay is when a waiter asks again if no message comes: for the first in line
// when so many servers are free that they make a majority.
func (r *Redlock) pollDelay(o outcome) time.Duration {
	rank := slices.MinFunc(o.held, func(x, y nodeAnswer) int { return x.rank - y.rank }).rank
	if rank > 1 {
		return jitter(r.options.idlePollInterval())
	}
	var left []time.Duration
	for _, h := range o.held {
		if h.left >= 0 {
			left = append(left, h.left)
		}
	}
	slices.Sort(left)
	delay := jitter(r.options.pollInterval())
	if enough := len(o.held) - (len(r.nodes) - r.majority()); enough <= len(left) {
		delay = min(delay, left[max(enough, 1)-1]+time.Millisecond+time.Duration(rank)*lookTime)
	}
	return delay
}

// sleep waits for the delay or for the message that it is this attempt's turn.
// It returns false if the attempt is over.
func (a *redlockAttempt) sleep(timer *time.Timer, delay time.Duration, heard *redlockWaiter) bool {
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

func (a *redlockAttempt) try() (*locks.Lease, error) {
	r := a.redlock
	ctx, cancel := context.WithTimeout(a.ctx, 3*r.nodeTimeout)
	defer cancel()
	whole := a.ctx
	a.ctx = ctx
	o, err := a.ask(nil)
	a.ctx = whole
	switch {
	case err == nil && o.seq > 0:
		return a.lease(o)
	case a.ctx.Err() != nil:
		return nil, a.ended(nil)
	case err != nil:
		return nil, failure("acquire", a.name, err)
	}
	// A waiter may have been told of what this attempt has had for a moment.
	if o.taken() || o.late > 0 || len(o.errs) > 0 {
		a.withdraw(r.wakeup(), lastGrace)
	}
	if o.answered() >= r.majority() && len(o.granted) < r.majority() {
		return nil, &locks.Error{Op: "acquire", Name: a.name, Kind: locks.ErrHeld}
	}
	errs := o.errs
	if len(errs) == 0 || o.late > 0 {
		errs = append(errs, fmt.Errorf("%d of %d servers replied within %v", len(r.nodes)-o.late, len(r.nodes), r.nodeTimeout))
	}
	return nil, r.failure("acquire", a.name, errs)
}

func (a *redlockAttempt) lease(o outcome) (*locks.Lease, error) {
	r := a.redlock
	h := &redlockHold{
		redlock: r,
		name:    a.name,
		keys:    a.keys,
		id:      a.id,
		waiter:  a.waiter,
		token:   o.seq,
		footing: o.footing,
		freed:   make(map[*node]bool),
	}
	lease, _, err := r.group.NewLease(a.caller, locks.Grant{
		Name:           a.name,
		Token:          fence.Token{Lineage: r.lineage(a.name), Seq: o.seq, Holder: a.id},
		Sent:           o.sent,
		Validity:       locks.Validity(r.ttl),
		Renew:          h.renew,
		RenewEvery:     r.ttl / 3,
		RenewTimeout:   r.ttl / 3,
		MaxHold:        r.options.maxHold(),
		Release:        h.release,
		ReleaseTimeout: 2 * r.nodeTimeout,
		ReleaseWindow:  r.ttl,
		Warn: func(what string, err error) {
			r.log.Warn("redislock: "+what, "lock", a.name, "error", err)
		},
	})
	return lease, err
}

// ended withdraws an attempt whose context is done and returns its error.
func (a *redlockAttempt) ended(seen error) error {
	// The last answer may have been on its way when the context ended.
	if a.withdraw(a.redlock.wakeup(), lastGrace) {
		seen = locks.ErrHeld
	}
	if a.caller.Err() == nil {
		return &locks.Error{Op: "acquire", Name: a.name, Kind: locks.ErrClosed, Err: seen}
	}
	return locks.Cancelled(a.caller, a.name, seen)
}

// startAnew gives back what a round has taken and makes a new id. It wakes nobody,
// because this attempt itself asks again.
func (a *redlockAttempt) startAnew() {
	waiter := a.waiter
	a.waiter = "" // it stays in its place
	a.withdraw("", a.redlock.nodeTimeout)
	a.waiter = waiter
	a.id = locks.NewHolder()
}

// withdraw removes what the servers may have of this attempt, and tells whether
// another was seen to hold the lock on a majority. What the servers do not confirm
// within grace is removed in the background. wakeup is the start of the channels to
// wake the next waiter, or empty.
func (a *redlockAttempt) withdraw(wakeup string, grace time.Duration) (held bool) {
	if !a.asked {
		return false
	}
	a.asked = false
	r, k, id, waiter := a.redlock, a.keys, a.id, a.waiter
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.caller), grace)
	defer cancel()
	h := 0
	r.clean(ctx, a.name, r.nodes, func(ctx context.Context, n *node) (int64, error) {
		return r.releaseOn(ctx, n, k, id, waiter, true, wakeup)
	}, func(rep reply[int64]) bool {
		if rep.value == anothers {
			h++
		}
		return true
	}, func(int) bool { return false })
	return h >= r.majority()
}
