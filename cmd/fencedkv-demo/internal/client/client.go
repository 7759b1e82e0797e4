package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/process"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/resource"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/service"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// Run carries out the parent's orders until ctx ends, which is when the parent
// has closed its end or gone.
func Run(ctx context.Context, parent *process.Conn) error {
	var c Config
	if err := parent.Receive(ctx, &c); err != nil {
		return err
	}
	api := loopback.NewClient(c.URL, c.Secret)
	defer api.Close()
	locker, err := c.Lock.Open(api)
	if err != nil {
		return parent.Send(Report{Failure: &Failure{service.KindOf(err), err.Error()}})
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = locker.Close(closing) // the parent removes what is left
	}()

	for {
		var order Order
		if err := parent.Receive(ctx, &order); err != nil {
			return nil
		}
		t := &teller{
			parent: parent, locker: locker, patience: c.Lock.Patience(), name: c.Client, act: order.Act,
			account: resource.NewAccount(api, order.Act),
		}
		report := Report{Done: true}
		if err := t.withdraw(ctx, order); err != nil {
			report = Report{Failure: &Failure{service.KindOf(err), err.Error()}}
		}
		if err := parent.Send(report); err != nil {
			return err
		}
	}
}

// teller carries out one order.
type teller struct {
	parent   *process.Conn
	locker   locks.Locker
	patience time.Duration // to wait for the lock
	account  *resource.Account
	name     string
	act      string
}

func (t *teller) tell(e event.Event) error {
	e.Act, e.Client = t.act, t.name
	return t.parent.Send(Report{Event: &e})
}

// withdraw tries until the withdrawal is written. A refused write has changed
// nothing, so that it is safe to start again with a new lock.
func (t *teller) withdraw(ctx context.Context, order Order) error {
	for {
		err := t.attempt(ctx, order)
		if resource.Reason(err) == "" {
			return err
		}
		order.Pause = PauseNone
		if err := t.tell(event.Event{Name: event.Retrying, Amount: order.Amount}); err != nil {
			return err
		}
	}
}

// attempt is one withdrawal under one lock.
func (t *teller) attempt(ctx context.Context, order Order) error {
	if err := t.tell(event.Event{Name: event.Acquiring, Amount: order.Amount}); err != nil {
		return err
	}
	hold, stopRenewing := context.WithTimeoutCause(ctx, t.patience, fmt.Errorf("no lock in %v", t.patience))
	defer stopRenewing()

	err := locks.Do(hold, t.locker, resource.Name, func(_ context.Context, lease *locks.Lease) error {
		left, err := t.prepare(ctx, lease, order)
		if err != nil {
			return err
		}
		if err := t.pause(ctx, order, left, stopRenewing); err != nil {
			return err
		}
		// No look at the lease here: it was looked at before the pause. The
		// context of the write is not the lease's either, because a request
		// that is on its way to the store does not end with a lease.
		return t.write(ctx, lease, left)
	})

	lost := errors.Is(err, locks.ErrLost)
	name := event.Released
	if lost {
		name = event.LeaseLost
	}
	if err == nil || lost {
		if err := t.tell(event.Event{Name: name}); err != nil {
			return err
		}
	}
	if lost && resource.Reason(err) == "" {
		return nil // the write was taken; that the lease was gone is known too late
	}
	return err
}

// prepare does all that comes before the write, and returns the new balance.
func (t *teller) prepare(ctx context.Context, lease *locks.Lease, order Order) (left int, err error) {
	token := lease.Token()
	if err := t.tell(event.Event{Name: event.Acquired, Token: token}); err != nil {
		return 0, err
	}
	if t.account.Fenced() {
		if err := t.account.Raise(ctx, token); err != nil {
			return 0, err
		}
		if err := t.tell(event.Event{Name: event.Raised, Token: token}); err != nil {
			return 0, err
		}
	}
	balance, err := t.account.Balance(ctx)
	if err != nil {
		return 0, err
	}
	if err := t.tell(event.Event{Name: event.Read, Balance: &balance}); err != nil {
		return 0, err
	}
	valid := lease.Context().Err() == nil
	if err := t.tell(event.Event{Name: event.LeaseChecked, Valid: &valid}); err != nil {
		return 0, err
	}
	if !valid {
		return 0, fmt.Errorf("the lease ran out before the write was ready; use a longer --ttl: %w",
			context.Cause(lease.Context()))
	}
	return balance - order.Amount, nil
}

// pause is the moment that no lock can rule out.
func (t *teller) pause(ctx context.Context, order Order, left int, stopRenewing func()) error {
	if order.Pause == PauseNone {
		return nil
	}
	if order.Pause == PauseBlock {
		stopRenewing()
	}
	if err := t.tell(event.Event{Name: event.AboutToWrite, Balance: &left}); err != nil {
		return err
	}
	return t.parent.Receive(ctx, &Go{})
}

func (t *teller) write(ctx context.Context, lease *locks.Lease, left int) error {
	e := event.Event{Name: event.Writing, Balance: &left}
	if t.account.Fenced() {
		e.Token = lease.Token()
	}
	if err := t.tell(e); err != nil {
		return err
	}
	err := t.account.Write(ctx, lease.Token(), left)
	if err == nil {
		return t.tell(event.Event{Name: event.Written, Balance: &left})
	}
	if refused, ok := errors.AsType[*fence.RejectedError](err); ok {
		told := t.tell(event.Event{
			Name: event.Rejected, Resource: refused.Resource,
			Offered: refused.Offered, Highest: refused.Mark.Token, Reason: resource.Reason(err),
		})
		return errors.Join(err, told)
	}
	return err
}
