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
			l.endRenewal()
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
			switch {
			case due > 0:
				nap = min(nap, due)
			case l.beginRenewal():
				renewing = true
				go func() { results <- result{l.renew(ctx)} }()
			}
		}
		timer.Reset(nap)

		select {
		case <-l.ended:
			return
		case <-timer.C:
		case r := <-results:
			renewing = false
			l.endRenewal()
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

// remove makes the first attempt at removing the grant's entry, once the lease
// has ended and no renewal is under way, or waits for whoever makes it. Its
// result is what Release returns. Release makes it itself where it can: to wake
// the lease's goroutine for that would cost it more than the rest of its work.
func (l *Lease) remove() error {
	l.mu.Lock()
	mine := !l.renewing && !l.removing
	l.removing = l.removing || mine
	l.mu.Unlock()
	if !mine {
		<-l.attempted
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.removal
	}
	err := l.removeOnce()
	l.mu.Lock()
	l.removal = err
	l.mu.Unlock()
	close(l.attempted)
	return err
}

// settle goes on where the first attempt had an unknown result, err, while the
// service may still have the entry.
func (l *Lease) settle(began time.Time, err error) {
	for pause := 10 * time.Millisecond; err != nil && !errors.Is(err, ErrLost); {
		if Elapsed(began) >= l.grant.releaseWindow() {
			break
		}
		l.grant.warn("release", err)
		time.Sleep(min(pause, l.grant.releaseWindow()))
		pause = min(2*pause, time.Second)
		err = l.removeOnce()
		// A repeated removal that finds nothing has found its own work done.
		l.mu.Lock()
		if err == nil || errors.Is(err, ErrLost) {
			l.removal = nil
		}
		l.mu.Unlock()
	}
	if errors.Is(err, ErrLost) {
		err = nil
	}
	if l.grant.Settled != nil {
		l.grant.Settled(err)
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
