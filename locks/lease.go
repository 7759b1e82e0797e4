package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Lease is a lock that was granted. It is single use: once it has been lost or
// released it stays so. Its methods may be called concurrently.
type Lease struct {
	grant  Grant
	ctx    context.Context
	cancel context.CancelCauseFunc

	onDone func(*Lease) // called when nothing of the lease is left

	attempted chan struct{} // closed when Grant.Release was called once

	mu        sync.Mutex
	timer     *time.Timer // the next look; see watch.go
	sent      time.Time   // the renewal that the deadline counts from
	renewal   *renewal    // nil if none is under way
	last      time.Time   // when the renewal before ended
	pause     time.Duration
	noRenewal bool  // the lease is to run out at its deadline
	cause     error // why the lease ended; nil while it lives
	removal   error // what is known of Grant.Release: see finish
}

// NewLease starts a lease on a grant, renews it and watches its deadline. What it
// runs for that ends some time after the lease has ended: when Grant.Release has
// settled. The values of ctx, but neither its end nor its deadline, are handed on
// to Lease.Context, Renew and Release.
//
// Third-party adapters call it, mostly through Group.NewLease; users of a
// Locker never do.
func NewLease(ctx context.Context, g Grant) (*Lease, Control) {
	return newLease(ctx, g, func(*Lease) {})
}

func newLease(ctx context.Context, g Grant, onDone func(*Lease)) (*Lease, Control) {
	l := &Lease{
		grant:     g,
		onDone:    onDone,
		sent:      g.Sent,
		last:      g.Sent,
		pause:     g.renewEvery(),
		attempted: make(chan struct{}),
	}
	inner, cancel := context.WithCancelCause(fence.NewContext(context.WithoutCancel(ctx), g.Token))
	l.ctx, l.cancel = &leaseContext{Context: inner, lease: l}, cancel
	l.start()
	return l, Control{l}
}

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.grant.Name }

// Token returns the fencing token of this grant. It never changes.
func (l *Lease) Token() fence.Token { return l.grant.Token }

// Deadline returns when the lease runs out unless it is renewed before. It
// moves with each renewal.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent.Add(l.grant.Validity)
}

// Context returns a context that carries the token and ends when the lease can
// no longer be trusted. context.Cause is then an error over ErrLost or
// ErrReleased. Its Err method looks at the clock when it is called, so a process
// that was stopped and wakes learns the truth at once; contexts derived from it
// learn when the runtime's timers have caught up.
func (l *Lease) Context() context.Context { return l.ctx }

// Release gives the lock back. It returns nil if the lock was freed now or by
// an earlier call, an error over ErrLost if the lease was gone before, and an
// error over ErrUnreachable if that could not be found out; removal then goes
// on in the background until the service frees the lock by itself. It never
// frees a successor's lock.
//
// Lease.Context has ended when Release begins to talk to the service. The end
// of ctx does not stop it, so that a cancelled caller leaves no lock behind;
// each attempt is bounded by the adapter's own timeout.
func (l *Lease) Release(ctx context.Context) error {
	if l.giveBack() {
		l.finish()
	}
	<-l.attempted
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.cause, ErrLost) {
		return l.cause
	}
	switch {
	case l.removal == nil:
		return nil
	case errors.Is(l.removal, ErrLost):
		return l.failure("release", ErrLost, l.removal)
	}
	return l.failure("release", ErrUnreachable, l.removal)
}

// giveBack ends the lease, and reports whether it did: its caller then calls
// finish.
func (l *Lease) giveBack() bool {
	l.expire()
	return l.end(&Error{Op: "hold", Name: l.grant.Name, Kind: ErrReleased})
}

// leaseContext adds the look at the clock to a context that a timer ends.
type leaseContext struct {
	context.Context
	lease *Lease
}

func (c *leaseContext) Err() error {
	c.lease.expire()
	return c.Context.Err()
}

func (l *Lease) remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remainingLocked()
}

func (l *Lease) remainingLocked() time.Duration { return l.grant.Validity - Elapsed(l.sent) }

// expire ends the lease if its time is over.
func (l *Lease) expire() {
	if l.remaining() <= 0 {
		l.lose(fmt.Errorf("its time of %v was over before it was renewed%s", l.grant.Validity, l.whyNotRenewed()))
	}
}

func (l *Lease) whyNotRenewed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.noRenewal:
		return "; renewal had ended with the context of Do"
	case l.pastHold():
		return fmt.Sprintf("; renewal had ended with MaxHold, %v", l.grant.MaxHold)
	}
	return ""
}

func (l *Lease) lose(reason error) {
	if l.end(l.failure("hold", ErrLost, reason)) {
		go l.finish()
	}
}

// end is the one way out of a live lease, and reports whether it was taken now;
// later causes are ignored.
func (l *Lease) end(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return false
	}
	l.cause = cause
	l.cancel(cause)
	l.timer.Stop()
	if l.renewal != nil {
		l.renewal.cancel()
	}
	return true
}

func (l *Lease) renewed(sent time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil || l.pastHold() || Elapsed(l.sent) >= l.grant.Validity {
		return false
	}
	if sent.After(l.sent) {
		l.sent = sent
	}
	return true
}

func (l *Lease) wantsRenewal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wantsRenewalLocked()
}

func (l *Lease) wantsRenewalLocked() bool { return l.cause == nil && !l.pastHold() }

func (l *Lease) pastHold() bool {
	return l.noRenewal || l.grant.MaxHold > 0 && Elapsed(l.grant.Sent) >= l.grant.MaxHold
}

// stopRenewing lets the lease run out at its deadline.
func (l *Lease) stopRenewing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noRenewal = true
}

// failure returns an error over kind that names the lock: err itself, if the
// adapter has made it so.
func (l *Lease) failure(op string, kind, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Name == l.grant.Name && errors.Is(e, kind) {
		return err
	}
	return &Error{Op: op, Name: l.grant.Name, Kind: kind, Err: err}
}
