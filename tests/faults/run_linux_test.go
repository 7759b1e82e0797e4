package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/wired"
	"github.com/fencedkv/fencedkv/tests/proxy"
)

// run is one cell, while it runs.
type run struct {
	t       *testing.T
	service *service
	moment  moment
	fault   fault
	lock    string
	ledger  *ledger

	victim   *victim
	killed   bool
	asked    time.Time    // when the victim was told to acquire
	grant    *fence.Token // the victim's, once it has told
	wires    []wired.Wire // of the victim, one per server
	peer     locks.Locker // of the first holder and the successor
	holder   *locks.Lease // the first holder's, where the victim waits
	next     *successor
	observer *observer

	hit time.Time // the fault has happened, or begun
	// outage is how long the operator was about it. Who loses a counter starts the
	// service anew.
	outage time.Duration
	over   time.Time // it was over
}

// newRun makes the clients, and lets the peer and the service get used to each
// other. Its run wants an end even if there is an error.
func newRun(t *testing.T, s *service, m moment, f fault, store *fencedkv.Store, lock string) (*run, error) {
	r := &run{t: t, service: s, moment: m, fault: f, lock: lock, ledger: &ledger{resource: store.Resource(lock)}}
	a := s.access
	a.Addrs = nil
	for _, addr := range s.Addrs {
		w := wired.New(t, s.count(t, addr))
		r.wires, a.Addrs = append(r.wires, w), append(a.Addrs, w.Network.Addr())
	}
	var err error
	if r.peer, err = s.open(); err != nil {
		return r, err
	}
	r.observer = observe(s, lock)
	if err := r.warm(); err != nil {
		return r, fmt.Errorf("warm up: %w", err)
	}
	r.victim, err = startVictim(t, a, r.written)
	return r, err
}

// warm makes every request once, on the lock itself: a Redis server knows a script by
// its hash from then on, and ZooKeeper has the lock's node.
func (r *run) warm() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := time.Now()
	lease, err := r.peer.Acquire(ctx, r.lock)
	if err != nil {
		return err
	}
	r.ledger.granted("very first holder", lease.Token(), asked, time.Now())
	deadline := lease.Deadline()
	if err := within("its lease is renewed, or ends", func() (bool, error) {
		return lease.Deadline().After(deadline) || lease.Context().Err() != nil, nil
	}); err != nil {
		return err
	}
	return lease.Release(ctx)
}

// written is called when the victim wants to write.
func (r *run) written(e event) {
	if e.Lock != r.lock {
		return // it warms up
	}
	token, err := fence.Parse(e.Token)
	if err != nil {
		r.t.Errorf("the victim's token: %v", err)
		return
	}
	looked := e.At
	if e.Ended {
		looked = time.Time{}
	}
	r.ledger.put(token, looked)
}

// end closes what is left.
func (r *run) end() error {
	if r.victim != nil {
		r.victim.kill()
	}
	if r.next != nil {
		r.next.stop()
	}
	if r.observer != nil {
		r.observer.end()
	}
	if r.peer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.peer.Close(ctx); err != nil && !errors.Is(err, locks.ErrUnreachable) {
		return fmt.Errorf("close the peer: %w", err)
	}
	return nil
}

// armed is a fault of the wires that waits for the victim's request of the moment.
type armed struct {
	met []<-chan struct{}
	let []func()
}

func (r *run) arm(arm func(c *proxy.Counter, name string) (<-chan struct{}, func())) *armed {
	a := &armed{}
	for _, w := range r.wires {
		met, let := arm(w.Counter, r.moment.request(r.service))
		a.met, a.let = append(a.met, met), append(a.let, let)
	}
	return a
}

// await returns when the victim's request has come on every wire.
func (r *run) await(a *armed) error {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	patient := time.After(patience)
	for _, met := range a.met {
		for come := false; !come; {
			select {
			case <-met:
				come = true
			case <-patient:
				return fmt.Errorf("the victim's request has not come within %v", patience)
			case <-tick.C:
				if e, ended := r.victim.seen(evEnded); ended && r.atLease() {
					return errors.New("the victim's lease ended before its request came: " + e.Err)
				}
			}
		}
	}
	return nil
}

func (a *armed) letGo() {
	for _, let := range a.let {
		let()
	}
}

// successor is the client that wants the lock next. It asks again when the service
// is away, as programs do.
type successor struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	lease *locks.Lease
	at    time.Time
	err   error // of the last acquisition
}

// succeed starts it, once.
func (r *run) succeed() {
	if r.next != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &successor{cancel: cancel, done: make(chan struct{})}
	r.next = n
	go func() {
		defer close(n.done)
		for ctx.Err() == nil {
			asked := time.Now()
			lease, err := r.peer.Acquire(ctx, r.lock)
			got := time.Now()
			n.mu.Lock()
			n.lease, n.at, n.err = lease, got, err
			n.mu.Unlock()
			if err == nil {
				r.ledger.granted("successor", lease.Token(), asked, got)
				r.ledger.raise(lease.Token())
				r.ledger.put(lease.Token(), time.Time{})
				return
			}
		}
	}()
}

func (n *successor) stop() {
	n.cancel()
	<-n.done
}

// granted waits until the successor has the lock and has written.
func (n *successor) granted() (*locks.Lease, time.Time, error) {
	_, err := receive("the successor's grant", n.done)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		err = n.err
	}
	return n.lease, n.at, err
}

// hasIt reports whether the successor has the lock.
func (n *successor) hasIt() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}
