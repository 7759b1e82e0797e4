package faults_test

import (
	"context"
	"errors"
	"time"

	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// strikes does what happens in one moment, after which the successor comes.
func (r *run) strikes(do func() error) error {
	err := do()
	r.hit = time.Now()
	r.succeed()
	return err
}

// pending does it while the victim's request was executed and its reply is under
// way. Where there is no request, it does it just so; while the victim waits, its
// turn comes right after.
func (r *run) pending(do func() error) error {
	return r.underWay((*proxy.Counter).HoldReply, do)
}

// before does it while the victim's request is under way and not yet executed,
// where there is one.
func (r *run) before(do func() error) error {
	return r.underWay((*proxy.Counter).HoldRequest, do)
}

func (r *run) underWay(hold func(*proxy.Counter, string) (<-chan struct{}, func()), do func() error) error {
	switch r.moment.name {
	case holding:
		return r.strikes(do)
	case waiting:
		return errors.Join(r.strikes(do), r.moment.begin(r))
	}
	a := r.arm(hold)
	defer a.letGo()
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.await(a); err != nil {
		return err
	}
	return r.strikes(do)
}

func (r *run) begin() error {
	if r.moment.begin == nil {
		return nil
	}
	return r.moment.begin(r)
}

func stopClient(r *run) error {
	stop := r.victim.stop
	if r.atLease() {
		stop = r.stopStaring
	}
	if err := r.pending(stop); err != nil {
		return err
	}
	if _, _, err := r.next.granted(); err != nil {
		return err
	}
	r.lasts()
	return r.victim.goOn()
}

func (r *run) stopStaring() error {
	if err := r.victim.order(order{Do: doStare}); err != nil {
		return err
	}
	if _, err := r.victim.await(evStares, evEnded); err != nil {
		return err
	}
	return r.victim.stop()
}

func killClient(r *run) error {
	return r.pending(func() error {
		r.killed = true
		r.victim.kill()
		return nil
	})
}

func stopServer(r *run) error {
	err := r.pending(func() error {
		r.service.each(func(srv servers.Server) { srv.Pause(r.t) })
		return nil
	})
	if err == nil {
		r.lasts()
		r.service.each(func(srv servers.Server) { srv.Resume(r.t) })
	}
	return err
}

func killServer(r *run) error {
	err := r.pending(func() error {
		r.service.each(func(srv servers.Server) { srv.Kill(r.t) })
		return nil
	})
	if err == nil {
		r.service.each(func(srv servers.Server) { srv.Start(r.t) })
	}
	return err
}

// late is by how much a reply is late before traffic is dropped, so that a lease that
// counts from the reply is too long. No request takes it for lost yet.
const late = ttl / 8

// drop drops what is sent in a direction, for long. As by TCP it may arrive when
// that has ended. A reply that is under way comes late, if it comes.
func drop(d proxy.Direction) func(*run) error {
	return func(r *run) error {
		hole := func() error {
			for _, w := range r.wires {
				w.Network.BlackHole(r.t, d)
			}
			return nil
		}
		var err error
		switch r.moment.name {
		case acquiring, renewing:
			err = r.pending(func() error {
				due := time.Now().Add(late)
				err := hole()
				<-time.After(time.Until(due))
				return err
			})
		case releasing:
			_ = hole()
			err = r.begin()
			_ = r.strikes(func() error { return nil })
		default:
			err = r.pending(hole)
		}
		r.lasts()
		for _, w := range r.wires {
			w.Network.Heal(r.t)
		}
		return err
	}
}

func loseReply(r *run) error {
	a := r.arm(func(c *proxy.Counter, name string) (<-chan struct{}, func()) { return c.DropReply(name), func() {} })
	if r.moment.name == waiting {
		r.succeed()
	}
	if err := r.begin(); err != nil {
		return err
	}
	return errors.Join(r.await(a), r.strikes(func() error { return nil }))
}

// delay keeps the request back until the victim has given up and the successor has
// the lock, if it gets it.
func delay(r *run) error {
	a := r.arm((*proxy.Counter).HoldRequest)
	defer a.letGo()
	if r.moment.name == waiting {
		r.succeed()
	}
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.await(a); err != nil {
		return err
	}
	_ = r.strikes(func() error { return nil })
	switch r.moment.name {
	case acquiring, waiting:
		if err := r.victim.order(order{Do: doCancel}); err != nil {
			return err
		}
		if _, err := r.victim.await(evAcquired); err != nil {
			return err
		}
	case renewing:
		e, err := r.endedOrRenewed()
		if err != nil || e.What == evRenewed {
			return err
		}
	case releasing:
		if _, err := r.victim.await(evReleased); err != nil {
			return err
		}
	}
	_, _, err := r.next.granted()
	return err
}

// The operator's deeds come before a renewal or release is executed, and after an
// entry was made.
func (r *run) deed(do func(ctx context.Context, name string) error) error {
	strike := func() error { return r.byHand(do) }
	if r.moment.name == acquiring {
		return r.pending(strike)
	}
	return r.before(strike)
}

func deleteEntry(r *run) error { return r.deed(r.service.deleteLast) }
func revokeLease(r *run) error { return r.deed(r.service.revokeLast) }

func loseCounter(r *run) error {
	return r.deed(func(ctx context.Context, name string) error { return r.service.loseCounter(r.t, ctx, name) })
}

func resetConnection(r *run) error {
	return r.pending(func() error {
		for _, w := range r.wires {
			w.Network.Reset(r.t)
		}
		return nil
	})
}
