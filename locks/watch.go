package locks

import (
	"context"
	"errors"
	"time"
)

// watch renews the lease and ends it at its deadline; it returns when the lease
// has ended and no renewal is under way.
func (l *Lease) watch() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.ctx))
	type result struct{ err error }
	results := make(chan result, 1)
	renewing := false
	defer func() {
		cancel()
		if renewing {
			<-results
		}
	}()

	last, pause := l.grant.Sent, l.grant.renewEvery()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.expire()
		nap := l.nap()
		if l.grant.Renew != nil && !renewing && l.wantsRenewal() {
			due := pause - Elapsed(last)
			if due <= 0 {
				renewing = true
				go func() { results <- result{l.renew(ctx)} }()
			} else {
				nap = min(nap, due)
			}
		}
		timer.Reset(nap)

		select {
		case <-l.ended:
			return
		case <-timer.C:
		case r := <-results:
			renewing = false
			last, pause = time.Now(), l.grant.renewEvery()
			if r.err != nil {
				l.grant.warn("renewal", r.err)
				pause = max(pause/4, time.Millisecond)
			}
		}
	}
}

// nap is the time to the next look at the clock. It is a part of what remains,
// because a timer counts monotonic time and the wall clock may have gone further.
func (l *Lease) nap() time.Duration {
	return max(0, min(l.remaining(), max(l.grant.Validity/8, time.Millisecond)))
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

// remove removes the grant's entry after the lease has ended. The first result
// is what Release returns; an unknown one is tried again while the service may
// still have the entry.
func (l *Lease) remove() {
	started := time.Now()
	pause := 10 * time.Millisecond
	for first := true; ; first = false {
		err := l.removeOnce()
		known := err == nil || errors.Is(err, ErrLost)
		l.mu.Lock()
		// A repeated removal that finds nothing has found its own work done.
		switch {
		case first:
			l.removal = err
		case known:
			l.removal = nil
		}
		l.mu.Unlock()
		if first {
			close(l.attempted)
		}
		if known || Elapsed(started) >= l.grant.releaseWindow() {
			if known {
				err = nil
			}
			if l.grant.Settled != nil {
				l.grant.Settled(err)
			}
			return
		}
		l.grant.warn("release", err)
		time.Sleep(min(pause, l.grant.releaseWindow()))
		pause = min(2*pause, time.Second)
	}
}

func (l *Lease) removeOnce() error {
	if l.grant.Release == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), l.grant.releaseTimeout())
	defer cancel()
	return l.grant.Release(ctx)
}
