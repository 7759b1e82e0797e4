// Package wire stands between the Lockers and the Server of package memlock in
// tests, as a network does: it can be cut, fall silent, and lose a reply. It
// also makes the Service with which package locktest tests memlock.
package wire

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

var errBroken = errors.New("wire: connection broken")

// gate lets calls pass unless it is shut.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while the gate is open
}

// shut closes the gate and returns what opens it again, which may be called
// twice.
func (g *gate) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	opened := make(chan struct{})
	g.opened = opened
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.opened = nil
		close(opened)
	})
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return ctx.Err()
	}
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Net is the network around one Server.
type Net struct {
	Server *memlock.Server

	paused   gate
	requests atomic.Int64

	mu   sync.Mutex
	down chan struct{} // closed when the connections break; then replaced
}

// NewNet makes a network around a new Server.
func NewNet() *Net {
	return &Net{Server: memlock.NewServer(nil), down: make(chan struct{})}
}

// Break breaks every connection: calls under way fail.
func (n *Net) Break() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.down)
	n.down = make(chan struct{})
}

func (n *Net) broken() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down
}

// Link is the connection of one Locker. Link implements memlock.Backend.
type Link struct {
	net  *Net
	cut  gate
	lose atomic.Bool
}

var _ memlock.Backend = (*Link)(nil)

// pass waits until both the link and the net let something through.
func (l *Link) pass(ctx context.Context) error {
	if err := l.cut.pass(ctx); err != nil {
		return err
	}
	return l.net.paused.pass(ctx)
}

// call carries one request to the server and its reply back. A request that was
// held up until its caller gave up arrives late, as on a real network.
func call[T any](ctx context.Context, l *Link, f func(context.Context) (T, error)) (T, error) {
	var none T
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	down := l.net.broken()
	watched := make(chan struct{})
	defer close(watched)
	go func() {
		select {
		case <-down:
			cancel(errBroken)
		case <-watched:
		}
	}()
	if l.pass(ctx) != nil {
		go func() {
			late := context.WithoutCancel(caller)
			if l.pass(late) == nil {
				late, cancel := context.WithTimeout(late, time.Millisecond)
				defer cancel()
				_, _ = f(late)
			}
		}()
		return none, context.Cause(ctx)
	}
	l.net.requests.Add(1)
	reply, err := f(ctx)
	if l.pass(ctx) != nil {
		return none, context.Cause(ctx)
	}
	return reply, err
}

func (l *Link) Take(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
	return call(ctx, l, func(ctx context.Context) (fence.Token, error) {
		t, err := l.net.Server.Take(ctx, a)
		if l.lose.CompareAndSwap(true, false) {
			return fence.Token{}, errBroken
		}
		return t, err
	})
}

func (l *Link) Wait(ctx context.Context, name, id string) error {
	return only(ctx, l, func(ctx context.Context) error { return l.net.Server.Wait(ctx, name, id) })
}

func (l *Link) Renew(ctx context.Context, name, id string, ttl time.Duration) error {
	return only(ctx, l, func(ctx context.Context) error { return l.net.Server.Renew(ctx, name, id, ttl) })
}

func (l *Link) Release(ctx context.Context, name, id string) error {
	return only(ctx, l, func(ctx context.Context) error { return l.net.Server.Release(ctx, name, id) })
}

// only is call for a request whose reply has nothing but an error.
func only(ctx context.Context, l *Link, f func(context.Context) error) error {
	_, err := call(ctx, l, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}
