package faults_test

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// settle lets everybody finish after the fault.
func (r *run) settle() error {
	if !r.killed {
		if err := r.settleVictim(); err != nil {
			return fmt.Errorf("the victim: %w", err)
		}
	}
	lease, _, err := r.next.granted()
	if err != nil {
		return fmt.Errorf("the successor: %w", err)
	}
	if err := lease.Context().Err(); err != nil {
		return fmt.Errorf("the successor has lost the lock: %w", context.Cause(lease.Context()))
	}
	if !r.killed && r.grant != nil { // as a client does that looks at nothing
		if err := r.victim.order(order{Do: doWrite}); err != nil {
			return err
		}
	}
	if err := lease.Release(context.Background()); err != nil {
		return fmt.Errorf("release of the successor: %w", err)
	}
	if _, told := r.victim.seen(evAcquired); !told && !r.killed { // it waits to the end
		if err := r.settleLease(); err != nil {
			return fmt.Errorf("the victim: %w", err)
		}
	}
	// While the victim's Locker is open: closing it may take along what was left.
	if err := r.entries(2*ttl, 0); err != nil {
		return err
	}
	if !r.killed {
		if err := r.closeVictim(); err != nil {
			return fmt.Errorf("the victim: %w", err)
		}
	}
	return r.takeAgain()
}

// settleVictim waits until the victim knows where it is.
func (r *run) settleVictim() error {
	if r.moment.name == releasing {
		e, err := r.victim.await(evReleased)
		unsure := e.Lost && r.service.releaseUnsure
		if err == nil && e.Err != "" && (r.fate() == keeps && !unsure || !e.Lost && !e.Away) {
			err = errors.New("release: " + e.Err)
		}
		return err
	}
	if err := within("somebody has the lock", func() (bool, error) {
		_, told := r.victim.seen(evAcquired)
		return told || r.next.hasIt(), nil
	}); err != nil {
		return fmt.Errorf("%w; it told %s", err, r.victim.told())
	}
	if _, told := r.victim.seen(evAcquired); !told {
		return nil // it waits for the successor
	}
	return r.settleLease()
}

// settleLease waits until the victim's lease is lost, or is renewed after the fault
// and then given back.
func (r *run) settleLease() error {
	e, err := r.acquired()
	if err != nil {
		return err
	}
	if e.Err != "" {
		if r.fate() == keeps || !e.Away && !e.Cancelled {
			return errors.New("acquire: " + e.Err)
		}
		return nil
	}
	e, err = r.endedOrRenewed()
	switch {
	case err != nil:
		return err
	case e.What == evEnded && (r.fate() == keeps || !e.Lost):
		return fmt.Errorf("its lease ended: %s", e.Err)
	case e.What == evEnded:
		return nil
	case r.fate() == loses:
		return errors.New("its lease was renewed, although it must be lost")
	}
	if err := r.hasGrant(); err != nil {
		return err
	}
	if err := release(r); err != nil {
		return err
	}
	e, err = r.victim.await(evReleased)
	if err == nil && e.Err != "" {
		err = errors.New("release: " + e.Err)
	}
	return err
}

// hasGrant demands that the service has the grant which the victim believes in.
func (r *run) hasGrant() error {
	has := false
	err := within("the service tells whether it has the victim's grant", func() (bool, error) {
		err := r.byHand(func(ctx context.Context, name string) (err error) {
			has, err = r.service.has(ctx, name, r.grant.Holder)
			return err
		})
		return err == nil, err
	})
	if err == nil && !has {
		err = errors.New("its lease was renewed, and the service does not have it")
	}
	return err
}

// endedOrRenewed waits until the victim's lease has ended, or was renewed by a
// request that it sent after the fault.
func (r *run) endedOrRenewed() (event, error) {
	since := r.hit
	if !r.over.IsZero() {
		since = r.over
	}
	return r.victim.awaitThat("lost or renewed", func(e event) bool {
		return e.What == evEnded || e.What == evRenewed && e.Deadline.Add(-ttl).After(since)
	})
}

// closeVictim ends the victim, of which nothing must be left.
func (r *run) closeVictim() error {
	if err := r.victim.order(order{Do: doClose}); err != nil {
		return err
	}
	e, err := r.victim.await(evClosed)
	switch {
	case err != nil:
		return err
	case e.Err != "" && !e.Away:
		return errors.New("close: " + e.Err)
	case e.Left != "":
		return errors.New("these goroutines have not ended with its Locker:\n" + e.Left)
	}
	return nil
}

func (r *run) takeAgain() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := time.Now()
	lease, err := r.peer.TryAcquire(ctx, r.lock)
	if err != nil {
		return fmt.Errorf("take the lock again: %w", err)
	}
	r.ledger.granted("last holder", lease.Token(), asked, time.Now())
	r.ledger.raise(lease.Token())
	return lease.Release(ctx)
}
