package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

const retryPause = 50 * time.Millisecond

// attempt is one call of Acquire or TryAcquire. It may use up several entries.
type attempt struct {
	*Locker
	name   string
	wait   bool
	queued bool  // it has waited, so it goes on through an outage
	seen   error // why it was not granted, when last seen
}

func (l *Locker) acquire(caller context.Context, name string, wait bool) (*locks.Lease, error) {
	if err := locks.CheckName(name); err != nil {
		return nil, err
	}
	end, err := l.group.Begin("acquire", name)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithCancel(caller)
	defer cancel()
	defer context.AfterFunc(l.closing, cancel)()

	a := &attempt{Locker: l, name: name, wait: wait}
	for caller.Err() == nil {
		lease, err := a.once(ctx)
		switch {
		case err == nil:
			return lease, nil
		case caller.Err() != nil:
		case l.closing.Err() != nil:
			return nil, &locks.Error{Op: "acquire", Name: name, Kind: locks.ErrClosed}
		case errors.Is(err, errAgain):
		case a.queued && !permanent(err):
			a.seen = l.failure("acquire", name, err)
			sleep(ctx, retryPause)
		default:
			return nil, l.failure("acquire", name, err)
		}
	}
	if a.seen == nil {
		a.seen = a.away()
	}
	return nil, locks.Cancelled(caller, name, a.seen)
}

// away returns an error if there is no connection to etcd.
func (a *attempt) away() error {
	switch a.client.ActiveConnection().GetState() {
	case connectivity.Connecting, connectivity.TransientFailure:
		return a.failure("acquire", a.name, errors.New(strings.TrimSuffix("no connection: "+a.network.reason(), ": ")))
	}
	return nil
}

// once takes one entry through the queue.
func (a *attempt) once(ctx context.Context) (*locks.Lease, error) {
	e, err := a.join(ctx, a.name)
	if err != nil {
		return nil, err
	}
	took, err := a.take(ctx, e)
	if err != nil {
		return nil, err // the entry is being removed
	}
	err = took.err
	switch {
	case err != nil:
	case e.unanswered > 0:
		// A copy of the request may still be on its way, so the lease must not
		// carry a grant: see orphan.
		err = errAgain
	case took.rev == 0 && !a.wait:
		a.seen = locks.ErrHeld
		err = &locks.Error{Op: "acquire", Name: a.name, Kind: locks.ErrHeld, Err: fmt.Errorf("holder %q", took.holder)}
	case took.rev == 0:
		err = errAgain // somebody else's key has the name
	case !took.before.isZero():
		a.seen, a.queued = locks.ErrHeld, true
		err = a.await(ctx, e, took.before)
	}
	if err == nil {
		err = a.freshen(ctx, e.s)
	}
	if err != nil {
		removed := a.abandon(e)
		if errors.Is(err, errAgain) {
			select { // else the next entry would wait for this one
			case <-removed:
			case <-ctx.Done():
			}
		}
		return nil, err
	}
	return a.grant(ctx, e, took)
}

// take puts the entry into the queue. The request is not cancelled with ctx:
// what etcd made of it would then be unknown. If ctx ends first, take returns
// its error and the entry is removed in the background.
func (a *attempt) take(ctx context.Context, e *entry) (*taken, error) {
	done := make(chan *taken)
	a.group.Go(func() {
		request, cancel := a.detached()
		defer cancel()
		t := e.take(request, a.wait)
		select {
		case done <- t:
		case <-ctx.Done():
			e.remove()
		}
	})
	select {
	case t := <-done:
		return t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// abandon removes the entry in the background; the channel is closed when that
// has come to its end.
func (a *attempt) abandon(e *entry) <-chan struct{} {
	done := make(chan struct{})
	a.group.Go(func() {
		defer close(done)
		e.remove()
	})
	return done
}

// freshen renews a session of which less than half its time is left, so that no
// grant begins with less.
func (a *attempt) freshen(ctx context.Context, s *session) error {
	switch {
	case !s.usable():
		return errAgain
	case s.fresh():
		return nil
	}
	ctx, cancel := a.request(ctx)
	defer cancel()
	if err := s.renew(ctx); err != nil {
		if !s.usable() {
			return errAgain
		}
		return err
	}
	return nil
}

// grant makes a lease of an entry that is the first of its queue.
func (a *attempt) grant(ctx context.Context, e *entry, t *taken) (*locks.Lease, error) {
	lease, control, err := a.group.NewLease(ctx, locks.Grant{
		Name: a.name,
		Token: fence.Token{
			Lineage: lineage(t.cluster, e.key.path()),
			Seq:     uint64(t.rev),
			Holder:  e.holder,
		},
		Sent:           e.s.lastSent(),
		Validity:       a.validity(),
		MaxHold:        a.opts.maxHold(),
		Release:        e.release,
		ReleaseTimeout: a.opts.requestTimeout(),
		Settled:        e.settled,
		Warn: func(what string, err error) {
			a.log.Warn("etcdlock: "+what, "lock", a.name, "error", err)
		},
	})
	if err != nil {
		return nil, err
	}
	e.adopt(control)
	return lease, nil
}
