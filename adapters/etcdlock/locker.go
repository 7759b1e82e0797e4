package etcdlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/locks"
)

var _ locks.Locker = (*Locker)(nil)

// Locker hands out locks of one prefix. All its grants share one etcd lease and
// the client's connection. It is safe for concurrent use.
type Locker struct {
	client *clientv3.Client
	opts   *Options
	log    hclog.Logger
	group  locks.Group

	closing context.Context // ends when Close begins
	stop    context.CancelFunc

	owned       *clientv3.Client // nil if the client is the caller's
	network     *network         // of owned
	closeOwned  sync.Once
	ownedClosed chan struct{}

	opening chan struct{} // held while a new session is made

	mu      sync.Mutex
	current *session
	checked bool // the server's version is good
}

// New returns a Locker that uses the caller's client, which stays the caller's
// to close, after the Locker. Nil options are the defaults. New sends nothing.
// Its error is over locks.ErrBadOption.
func New(client *clientv3.Client, opts *Options) (*Locker, error) {
	if client == nil {
		return nil, &locks.Error{Op: "new", Kind: locks.ErrBadOption, Err: errors.New("the client is nil")}
	}
	if err := opts.check("new"); err != nil {
		return nil, err
	}
	if opts != nil {
		own := *opts
		opts = &own
	}
	l := &Locker{
		client:      client,
		opts:        opts,
		log:         opts.logger(),
		ownedClosed: make(chan struct{}),
		opening:     make(chan struct{}, 1),
	}
	l.closing, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// Acquire waits until the lock is granted or ctx is done; see locks.Locker.
// Waiters are served in the order in which they came.
//
// It returns an error over locks.ErrUnreachable if etcd does not answer within
// Options.RequestTimeout before the attempt has a place in the queue. A waiter
// goes on through an outage until ctx is done; if its lease ran out meanwhile,
// it queues again at the end. An etcd that refuses permission ends the waiting
// at once.
func (l *Locker) Acquire(ctx context.Context, name string) (*locks.Lease, error) {
	return l.acquire(ctx, name, true)
}

// TryAcquire returns an error over locks.ErrHeld if somebody has the lock or
// waits for it; see locks.Locker. Such an attempt creates nothing in etcd.
func (l *Locker) TryAcquire(ctx context.Context, name string) (*locks.Lease, error) {
	return l.acquire(ctx, name, false)
}

// Close releases all leases, revokes the shared lease and closes the client if
// Dial made it. See locks.Locker.
func (l *Locker) Close(ctx context.Context) error {
	l.stop()
	err := l.group.Close(ctx)
	if l.owned == nil {
		return err
	}
	l.closeOwned.Do(func() {
		go func() {
			defer close(l.ownedClosed)
			// Cleanup that outlasts ctx still needs the client.
			_ = l.group.Close(context.Background())
			_ = l.owned.Close()
		}()
	})
	select {
	case <-l.ownedClosed:
		return err
	case <-ctx.Done():
		if err != nil {
			return err
		}
		return &locks.Error{Op: "close", Kind: locks.ErrCancelled, Err: ctx.Err()}
	}
}

// request returns the context of one request that the caller waits for.
func (l *Locker) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.opts.requestTimeout())
}

// detached returns the context of a request that must reach its end although
// the caller may have left.
func (l *Locker) detached() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), l.opts.requestTimeout())
}

func (l *Locker) validity() time.Duration { return locks.Validity(l.opts.ttl()) }

// sleep waits for d, and reports whether it did before ctx was done.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
