package locks

import (
	"context"
	"errors"
	"sync"
)

// Group owns the leases, the calls under way and the background work of one
// Locker. The zero Group is ready. Its methods may be called concurrently.
type Group struct {
	mu     sync.Mutex
	closed bool
	leases map[*Lease]struct{}
	work   int
	idle   chan struct{} // closed when the group is closed and no work is left
	quit   chan struct{} // closed by Close

	resting int         // goroutines that wait for the next call of Go
	next    chan func() // for them; closed by Close
}

// maxResting bounds the goroutines that Go keeps for later.
const maxResting = 8

// Begin is the first step of Acquire, TryAcquire and whatever else Close must
// wait for. It returns the function that ends the call, or an error over
// ErrClosed. Between the two, end soon after Closing is closed.
func (g *Group) Begin(op, name string) (end func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.init()
	if g.closed {
		return nil, &Error{Op: op, Name: name, Kind: ErrClosed}
	}
	g.work++
	return sync.OnceFunc(func() { g.leave(nil) }), nil
}

// NewLease is like the function NewLease, for a lease that Close ends; call it
// between Begin and its end. If the group was closed in the meantime the grant
// is given back at once and the error is over ErrClosed.
func (g *Group) NewLease(ctx context.Context, grant Grant) (*Lease, Control, error) {
	g.mu.Lock()
	g.init()
	closed := g.closed
	g.work++
	l, c := newLease(ctx, grant, g.leave)
	g.leases[l] = struct{}{}
	g.mu.Unlock()
	if closed {
		err := l.Release(ctx) // Close may have listed the leases before this one
		return nil, Control{}, &Error{Op: "acquire", Name: grant.Name, Kind: ErrClosed, Err: err}
	}
	return l, c, nil
}

// Go runs f in a goroutine that Close waits for. f must end soon after Closing
// is closed, or be bounded in time by itself. It reports whether f was started,
// which it is not once Close has found nothing left to wait for.
func (g *Group) Go(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.init()
	if g.closed && g.work == 0 {
		return false
	}
	g.work++
	if g.resting > 0 {
		g.resting--
		g.next <- f
	} else {
		go g.run(f)
	}
	return true
}

// run runs f and what comes after it. The stack of a goroutine that has made one
// request is large enough for the next, and to make a stack grow costs about as
// much as to send a request.
func (g *Group) run(f func()) {
	for rest := true; rest; {
		func() {
			lives := false // not after runtime.Goexit
			defer func() { rest = g.rest(lives) }()
			f()
			lives = true
		}()
		if rest {
			f, rest = <-g.next
		}
	}
}

// rest ends the work of a goroutine, and reports whether it may wait for more, if
// it lives.
func (g *Group) rest(lives bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.work--
	g.finish()
	if !lives || g.closed || g.resting == maxResting {
		return false
	}
	g.resting++
	return true
}

// Closing is closed when Close has been called.
func (g *Group) Closing() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.init()
	return g.quit
}

// Close releases all leases, waits for them and for all work started by Go, and
// returns nil, or the errors of the removals that nothing has confirmed. If ctx
// ends first it returns an error over ErrCancelled and ctx.Err(); what is left
// goes on.
func (g *Group) Close(ctx context.Context) error {
	g.mu.Lock()
	g.init()
	if !g.closed {
		g.closed = true
		close(g.quit)
		close(g.next)
		g.resting = 0
		g.finish()
	}
	var live []*Lease
	for l := range g.leases {
		live = append(live, l)
	}
	idle := g.idle
	g.mu.Unlock()

	for _, l := range live {
		if l.giveBack() {
			go l.finish()
		}
	}
	select {
	case <-idle:
	case <-ctx.Done():
		select {
		case <-idle: // both are ready, and what is done is done
		default:
			return &Error{Op: "close", Kind: ErrCancelled, Err: whyEnded(ctx)}
		}
	}
	var errs []error
	for _, l := range live {
		if err := l.Release(ctx); err != nil && !errors.Is(err, ErrLost) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (g *Group) init() {
	if g.leases == nil {
		g.leases = make(map[*Lease]struct{})
		g.idle = make(chan struct{})
		g.quit = make(chan struct{})
		g.next = make(chan func(), maxResting)
	}
}

func (g *Group) leave(l *Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.leases, l)
	g.work--
	g.finish()
}

// finish tells Close that nothing is left. A lease that is made against the
// rule, outside of Begin, must not make it tell twice.
func (g *Group) finish() {
	if !g.closed || g.work > 0 {
		return
	}
	select {
	case <-g.idle:
	default:
		close(g.idle)
	}
}
