package memlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// DefaultTTL is the lease time of Options that name none.
const DefaultTTL = 10 * time.Second

// Options are the settings of a Locker. A nil *Options has the defaults.
type Options struct {
	// TTL is the lease time, by default DefaultTTL and at least MinTTL. A
	// holder that stops renewing loses the lock after it.
	TTL time.Duration

	// MaxHold ends the renewal of a lease that long after its grant, so that a
	// holder that hangs cannot keep the lock; it then has the rest of the lease
	// time. 0, the default, is no limit.
	MaxHold time.Duration

	// Warn, if set, receives what the caller need not act on, such as one
	// failed renewal. It must not block.
	Warn func(what string, err error)
}

func (o *Options) ttl() time.Duration {
	if o == nil || o.TTL == 0 {
		return DefaultTTL
	}
	return o.TTL
}

func (o *Options) maxHold() time.Duration {
	if o == nil {
		return 0
	}
	return o.MaxHold
}

func (o *Options) warn() func(string, error) {
	if o == nil || o.Warn == nil {
		return func(string, error) {}
	}
	return o.Warn
}

func (o *Options) check() error {
	if o.maxHold() < 0 {
		return &locks.Error{Op: "new", Kind: locks.ErrBadOption,
			Err: fmt.Errorf("MaxHold is %v; give 0 for no limit", o.maxHold())}
	}
	return checkTTL(o.ttl())
}

// Locker is one client of a Server. Its methods may be called concurrently, and
// its goroutines exclude each other as those of different Lockers do.
type Locker struct {
	backend Backend
	ttl     time.Duration
	maxHold time.Duration
	warn    func(what string, err error)

	group   locks.Group
	closing context.Context // ends when Close is called
	close   context.CancelFunc
}

var _ locks.Locker = (*Locker)(nil)

// New makes a Locker on a Server of its own. Its error is over
// locks.ErrBadOption.
func New(o *Options) (*Locker, error) { return NewLocker(NewServer(nil), o) }

// NewLocker makes a Locker on this Server. Its error is over locks.ErrBadOption.
func (s *Server) NewLocker(o *Options) (*Locker, error) { return NewLocker(s, o) }

// NewLocker makes a Locker on a Server that is reached through b. Its error is
// over locks.ErrBadOption.
func NewLocker(b Backend, o *Options) (*Locker, error) {
	if b == nil {
		return nil, &locks.Error{Op: "new", Kind: locks.ErrBadOption, Err: errors.New("the backend is nil")}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Locker{backend: b, ttl: o.ttl(), maxHold: o.maxHold(), warn: o.warn()}
	l.closing, l.close = context.WithCancel(context.Background())
	return l, nil
}

// Acquire waits until the lock is granted or ctx is done: see locks.Locker. A
// server that does not answer is asked again until ctx is done.
func (l *Locker) Acquire(ctx context.Context, name string) (*locks.Lease, error) {
	return l.acquire(ctx, name, true)
}

// TryAcquire returns an error over locks.ErrHeld if somebody has the lock or
// waits for it: see locks.Locker. A server that does not answer is asked three
// times, a third of the lease time each.
func (l *Locker) TryAcquire(ctx context.Context, name string) (*locks.Lease, error) {
	return l.acquire(ctx, name, false)
}

// Close releases all leases and ends what is under way: see locks.Locker.
func (l *Locker) Close(ctx context.Context) error {
	l.close()
	return l.group.Close(ctx)
}
