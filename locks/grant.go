package locks

import (
	"context"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Grant is what an adapter knows about a lock that the service has granted.
// NewLease turns it into a Lease.
type Grant struct {
	Name  string
	Token fence.Token

	// Sent is the time just before the request was sent from which the service
	// counts the lease time. It must come from time.Now, so that it has a
	// monotonic reading.
	Sent time.Time

	// Validity is how long after Sent the grant can be trusted. See the
	// function Validity.
	Validity time.Duration

	// Renew extends the lease time, counted from the moment of the call. It
	// must only update, never create. An error over ErrLost ends the lease;
	// any other error is tried again while time remains. It is never called
	// twice at once. It must return soon after its ctx ends, because removal,
	// and with it Lease.Release, waits for that. Nil for an adapter that renews
	// a shared lease or session itself and reports through Control.Renewed.
	Renew func(ctx context.Context) error

	// RenewEvery is the time from one renewal to the next, by default a third
	// of Validity. RenewTimeout bounds one call of Renew, by default RenewEvery.
	RenewEvery   time.Duration
	RenewTimeout time.Duration

	// MaxHold ends renewal that long after Sent; the lease then runs out at its
	// deadline. 0 is no limit.
	MaxHold time.Duration

	// Release removes the grant's own entry, comparing before it deletes. It
	// returns nil if the entry is removed now, an error over ErrLost if it was
	// gone or is another's, and any other error if that is not known. It is
	// called once the lease has ended, however that came, and again after an
	// unknown result, but never twice at once. It must return soon after its
	// ctx ends. Nil for a grant that leaves no entry.
	Release func(ctx context.Context) error

	// ReleaseTimeout bounds one call of Release, by default 5 s. ReleaseWindow
	// is how long an unknown result is tried again, by default Validity. Give
	// it the service's full lease time, after which the service has forgotten
	// the entry by itself.
	ReleaseTimeout time.Duration
	ReleaseWindow  time.Duration

	// Settled, if set, is called once, after the last call of Release: with nil
	// if the entry is known to be gone, else with the last error. An adapter
	// whose grants share a lease or session retires it then.
	Settled func(err error)

	// Warn, if set, receives what the holder need not act on, such as one
	// failed renewal. It must not block.
	Warn func(what string, err error)
}

func (g *Grant) renewEvery() time.Duration {
	if g.RenewEvery > 0 {
		return g.RenewEvery
	}
	return max(g.Validity/3, time.Millisecond)
}

func (g *Grant) renewTimeout() time.Duration {
	if g.RenewTimeout > 0 {
		return g.RenewTimeout
	}
	return g.renewEvery()
}

func (g *Grant) releaseTimeout() time.Duration {
	if g.ReleaseTimeout > 0 {
		return g.ReleaseTimeout
	}
	return 5 * time.Second
}

func (g *Grant) releaseWindow() time.Duration {
	if g.ReleaseWindow > 0 {
		return g.ReleaseWindow
	}
	return g.Validity
}

func (g *Grant) warn(what string, err error) {
	if g.Warn != nil {
		g.Warn(what, err)
	}
}

// Control is the adapter's side of a Lease. Its methods may be called
// concurrently, and do nothing once the lease has ended.
type Control struct{ lease *Lease }

// Renewed moves the deadline to sent + Grant.Validity, never backwards. sent is
// the time just before the renewal was sent. It reports whether the lease takes
// renewals: not if it has ended, has passed its deadline, is past MaxHold, or the
// context of its Do has ended.
func (c Control) Renewed(sent time.Time) bool { return c.lease.renewed(sent) }

// Lose ends the lease because the service says so: its context ends with an
// error over ErrLost and reason.
func (c Control) Lose(reason error) { c.lease.lose(reason) }

// Wants reports whether the lease is to be renewed further: it has not ended,
// is not past MaxHold, and the context of its Do has not ended.
func (c Control) Wants() bool { return c.lease.wantsRenewal() }
