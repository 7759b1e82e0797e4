package play

import (
	"context"
	"fmt"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/client"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/process"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/resource"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/tally"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// act plays one act and counts.
func (p *play) act(ctx context.Context, act string) (event.Result, error) {
	account := p.cast.account(act)
	before, err := account.Balance(ctx)
	if err != nil {
		return event.Result{}, err
	}
	err = p.emit(act, event.Event{Name: event.ActStarted, Resource: resource.Name, Balance: &before})
	if err != nil {
		return event.Result{}, err
	}
	t := &tally.Tally{Before: before}
	if err := p.withdraw(ctx, act, t); err != nil {
		return event.Result{}, err
	}
	after, err := account.Balance(ctx)
	if err != nil {
		return event.Result{}, err
	}
	result := t.Result(after)
	return result, p.emit(act, event.Event{Name: event.ActEnded, Resource: resource.Name, Result: &result})
}

// withdraw lets both clients withdraw, client A with a pause in the middle.
func (p *play) withdraw(ctx context.Context, act string, t *tally.Tally) error {
	a, b := p.cast.a, p.cast.b
	if err := a.Send(client.Order{Act: act, Amount: amountA, Pause: p.Pause}); err != nil {
		return err
	}
	if p.Pause == client.PauseNone {
		if err := p.finish(ctx, a, act, t, amountA, nil); err != nil {
			return err
		}
		return p.order(ctx, b, act, t, nil)
	}

	var stale fence.Token
	err := p.follow(ctx, a, act, func(e event.Event) (bool, error) {
		if e.Name == event.Acquired {
			stale = e.Token
		}
		return e.Name == event.AboutToWrite, nil
	})
	if err != nil {
		return err
	}
	stopped := event.Event{Client: event.ClientA, PID: a.PID(), How: event.HowBlocked}
	if p.Pause == client.PauseStop {
		stopped.How = event.HowSignal
		if err := a.Stop(); err != nil {
			return err
		}
	}
	stopped.Name = event.Stopped
	if err := p.emit(act, stopped); err != nil {
		return err
	}

	// Client A's lease has run out when, and because, client B has the lock.
	err = p.order(ctx, b, act, t, func() error {
		return p.emit(act, event.Event{Name: event.LeaseExpired, Client: event.ClientA, Token: stale})
	})
	if err != nil {
		return err
	}

	// The word to go on is already there when client A wakes.
	if err := a.Send(client.Go{}); err != nil {
		return err
	}
	if p.Pause == client.PauseStop {
		if err := a.Continue(); err != nil {
			return err
		}
	}
	stopped.Name = event.Continued
	if err := p.emit(act, stopped); err != nil {
		return err
	}
	return p.finish(ctx, a, act, t, amountA, nil)
}

// order lets client B withdraw; expired is called before it is granted the lock.
func (p *play) order(ctx context.Context, b *process.Child, act string, t *tally.Tally, expired func() error) error {
	if err := b.Send(client.Order{Act: act, Amount: amountB, Pause: client.PauseNone}); err != nil {
		return err
	}
	return p.finish(ctx, b, act, t, amountB, expired)
}

// finish follows a client to the end of its order. acquired, if set, is called
// before the event of that name.
func (p *play) finish(ctx context.Context, c *process.Child, act string, t *tally.Tally, amount int, acquired func() error) error {
	return p.follow(ctx, c, act, func(e event.Event) (bool, error) {
		switch {
		case e.Name == event.Acquired && acquired != nil:
			return false, acquired()
		case e.Name == event.Written:
			t.Acknowledged = append(t.Acknowledged, amount)
		}
		return false, nil
	})
}

// follow passes a client's events on until see, which is called before each is
// passed on, says that this is the one, or the order is done.
func (p *play) follow(ctx context.Context, c *process.Child, act string, see func(event.Event) (bool, error)) error {
	patience := 2*p.Lock.Patience() + p.Lock.TTL // more than a client's own
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("nothing more happened in %v", patience))
	defer cancel()
	for {
		var r client.Report
		if err := c.Receive(ctx, &r); err != nil {
			return err
		}
		switch {
		case r.Failure != nil:
			return r.Failure
		case r.Done:
			return nil
		case r.Event == nil:
			return fmt.Errorf("client: a report without content")
		}
		last, err := see(*r.Event)
		if err != nil {
			return err
		}
		if err := p.emit(act, *r.Event); err != nil || last {
			return err
		}
	}
}
