package locks

import (
	"context"
	"errors"
	"time"
)

// start begins to watch the lease: a timer, and no goroutine, because most locks
// are given back long before there is anything to do.
func (l *Lease) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(l.napLocked(), l.look)
}

// look ends the lease at its deadline and begins the renewal that is due.
func (l *Lease) look() {
	l.expire()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	if l.grant.Renew != nil && l.renewal == nil && l.wantsRenewalLocked() && Elapsed(l.last) >= l.pause {
		l.renewLocked()
	}
	l.timer.Reset(l.napLocked())
}

// napLocked is the time to the next look. It is at most a part of what remains,
// because a timer counts monotonic time and the wall clock may have gone further.
func (l *Lease) napLocked() time.Duration {
	nap := min(l.remainingLocked(), max(l.grant.Validity/8, time.Millisecond))
	if l.grant.Renew != nil && l.renewal == nil && l.wantsRenewalLocked() {
		nap = min(nap, l.pause-Elapsed(l.last))
	}
	return max(0, nap)
}

// renewal is a call of Grant.Renew that is under way.
type renewal struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (l *Lease) renewLocked() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.ctx))
	r := &renewal{cancel, make(chan struct{})}
	l.renewal = r
	go func() {
		defer close(r.done)
		defer cancel()
		err := l.renew(ctx)
		l.mu.Lock()
		l.renewal = nil
		l.last, l.pause = time.Now(), l.grant.renewEvery()
		if err != nil {
			l.pause = max(l.pause/4, time.Millisecond)
		}
		lives := l.cause == nil
		l.mu.Unlock()
		if !lives {
			return
		}
		if err != nil {
			l.grant.warn("renewal", err)
		}
		l.look()
	}()
}

func (l *Lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.grant.renewTimeout())
	defer cancel()
	sent := time.Now()
	err := l.grant.Renew(ctx)
	switch {
	case err == nil:
		l.renewed(sent)
	case errors.Is(err, ErrLost):
		l.lose(err)
	}
	return err
}

// finish removes the grant's entry after the lease has ended. Whoever ended it
// calls it, once. The first result is what Release returns; an unknown one is
// tried again, in the background, while the service may still have the entry.
func (l *Lease) finish() {
	began := time.Now()
	l.mu.Lock()
	r := l.renewal
	l.mu.Unlock()
	if r != nil {
		<-r.done // it might undo the removal
	}
	err := l.removeOnce()
	l.mu.Lock()
	l.removal = err
	l.mu.Unlock()
	close(l.attempted)
	if known(err) {
		l.settled(err)
		return
	}
	go l.removeAgain(began, err)
}

func known(err error) bool { return err == nil || errors.Is(err, ErrLost) }

func (l *Lease) removeAgain(began time.Time, err error) {
	for pause := 10 * time.Millisecond; !known(err); {
		if Elapsed(began) >= l.grant.releaseWindow() {
			break
		}
		l.grant.warn("release", err)
		time.Sleep(min(pause, l.grant.releaseWindow()))
		pause = min(2*pause, time.Second)
		if err = l.removeOnce(); known(err) {
			// A repeated removal that finds nothing has found its own work done.
			l.mu.Lock()
			l.removal = nil
			l.mu.Unlock()
		}
	}
	l.settled(err)
}

func (l *Lease) settled(err error) {
	defer l.onDone(l)
	if l.grant.Settled == nil {
		return
	}
	if known(err) {
		err = nil
	}
	l.grant.Settled(err)
}

func (l *Lease) removeOnce() error {
	if l.grant.Release == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), l.grant.releaseTimeout())
	defer cancel()
	return l.grant.Release(ctx)
}
