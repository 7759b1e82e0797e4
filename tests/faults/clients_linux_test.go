package faults_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// hold gives the lock to the first holder.
func (r *run) hold() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := time.Now()
	lease, err := r.peer.Acquire(ctx, r.lock)
	if err != nil {
		return fmt.Errorf("the first holder: %w", err)
	}
	r.holder = lease
	r.ledger.granted("first holder", lease.Token(), asked, time.Now())
	r.ledger.raise(lease.Token())
	return nil
}

// release releases a lease of the peer. The service may be away, or may have been
// made to forget it.
func (r *run) release(lease *locks.Lease) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := lease.Release(ctx)
	if r.fault.harms(r.service) && errors.Is(err, locks.ErrUnreachable) {
		return nil
	}
	if r.fault.lost && errors.Is(err, locks.ErrLost) {
		return nil
	}
	return err
}

// acquired waits until the victim's acquisition has an outcome.
func (r *run) acquired() (event, error) {
	e, err := r.victim.await(evAcquired)
	if err != nil || e.Err != "" {
		return e, err
	}
	token, err := fence.Parse(e.Token)
	if err != nil {
		return e, err
	}
	if r.grant == nil {
		r.grant = &token
		r.ledger.granted("victim", token, r.asked, e.At)
		r.observer.of(token.Holder)
	}
	return e, nil
}

// entries waits for d until the service has n entries for the lock.
func (r *run) entries(d time.Duration, n int) error {
	got := -1
	err := withinTime(d, fmt.Sprintf("%d entries", n), func() (bool, error) {
		var err error
		got, err = r.countEntries()
		return got == n, err
	})
	if err != nil {
		return fmt.Errorf("%w; there are %d", err, got)
	}
	return nil
}

func (r *run) countEntries() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	return r.service.entries(ctx, r.lock)
}

// byHand is a deed of the operator.
func (r *run) byHand(do func(ctx context.Context, name string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begun := time.Now()
	err := do(ctx, r.lock)
	r.outage = time.Since(begun)
	return err
}
