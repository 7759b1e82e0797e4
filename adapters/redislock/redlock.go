package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

var (
	_ locks.Locker   = (*Redlock)(nil)
	_ fence.Verifier = (*Redlock)(nil)
)

// Redlock acquires locks on N independent Redis servers, of which a majority
// must answer. The package comment says how, and what the servers must keep. It is
// safe for concurrent use. Make it with NewRedlock or DialRedlock.
type Redlock struct {
	options     *RedlockOptions
	prefix      string
	ttl         time.Duration
	nodeTimeout time.Duration
	shutOut     time.Duration // how long a withdrawn attempt is remembered
	rest        time.Duration // how long a server that has forgotten grants nothing
	log         hclog.Logger

	nodes []*node
	ours  []func() error // close the clients that DialRedlock made

	group locks.Group
	wakes redlockWakes
	ctx   context.Context // ends with Close
	stop  context.CancelFunc

	tag      string        // of this client's requests and waiters
	asked    atomic.Uint64 // requests so far
	waiters  atomic.Uint64 // so far
	set      atomic.Pointer[string]
	misfit   atomic.Pointer[error] // the servers are no set
	settling chan struct{}         // a lock that a context can interrupt

	mu    sync.Mutex
	cards []card // of the servers that have told who they are

	cleaning atomic.Int32 // removals that wait for servers
}

// NewRedlock returns a Redlock on one client per server; nil options are the
// defaults. The servers must be independent masters: no replicas of each other, no
// Cluster. Their number must be odd; 3 and 5 are usual, and 1 survives nothing.
//
// It makes no request; the first Acquire asks the servers who they are, and
// fails over locks.ErrBadOption if one is listed twice or belongs to another
// set. The clients stay the caller's: Close does not close them.
//
// The error is over locks.ErrBadOption.
func NewRedlock(clients []Client, o *RedlockOptions) (*Redlock, error) {
	if len(clients)%2 == 0 {
		return nil, badOption(fmt.Errorf("%d servers are listed; use an odd number, because an even one survives "+
			"no more failures than the next lower", len(clients)))
	}
	for i, client := range clients {
		if err := checkRedlockClient(i, client, clients[:i]); err != nil {
			return nil, err
		}
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o != nil {
		own := *o // the caller may use its own for the next Redlock
		o = &own
	}
	r := &Redlock{
		options:     o,
		prefix:      o.prefix(),
		ttl:         o.ttl(),
		nodeTimeout: o.nodeTimeout(),
		shutOut:     2*o.ttl() + time.Minute,
		rest:        o.ttl() + 2*floorBound,
		log:         o.logger(),
		tag:         rand.Text(),
		settling:    make(chan struct{}, 1),
	}
	for i, client := range clients {
		r.nodes = append(r.nodes, &node{redlock: r, index: i, client: client})
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.wakes.redlock = r
	return r, nil
}

func checkRedlockClient(i int, client Client, before []Client) error {
	if isNil(client) {
		return badOption(fmt.Errorf("the client of server %d is nil", i+1))
	}
	switch client.(type) {
	case *redis.Ring, *redis.ClusterClient:
		return badOption(fmt.Errorf("the client of server %d is a %T; use a client of one server each", i+1, client))
	}
	for j, other := range before {
		if reflect.TypeOf(client).Comparable() && other == client {
			return badOption(fmt.Errorf("servers %d and %d have the same client; list each server once", j+1, i+1))
		}
	}
	return nil
}

// DialRedlock returns a Redlock with clients of its own on the servers at the
// addresses, which are written as for Dial. It makes no connection; the first
// Acquire does. Close closes the clients.
//
// The error is over locks.ErrBadOption and never shows an address, which may
// contain a password.
func DialRedlock(addresses []string, o *RedlockOptions) (*Redlock, error) {
	var clients []Client
	var closers []func() error
	fail := func(err error) (*Redlock, error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return nil, err
	}
	seen := make(map[string]int)
	for i, address := range addresses {
		opts, err := redis.ParseURL(address)
		if err != nil || address == "" {
			// The parser's message may quote a part of the address.
			return fail(badOption(fmt.Errorf("the address of server %d is not understood; use redis://user:password@host:port/database "+
				"or rediss://..., with special characters of the password percent-encoded", i+1)))
		}
		if err := checkPort(opts); err != nil {
			return fail(badOption(fmt.Errorf("server %d: %w", i+1, err)))
		}
		if j, twice := seen[opts.Addr]; twice {
			return fail(badOption(fmt.Errorf("servers %d and %d have the same address; list each server once, "+
				"because two databases of one server fail together", j+1, i+1)))
		}
		seen[opts.Addr] = i
		opts.ContextTimeoutEnabled = true
		opts.DialerRetries, opts.MaxRetries = 1, 1
		client := redis.NewClient(opts)
		clients, closers = append(clients, client), append(closers, client.Close)
	}
	r, err := NewRedlock(clients, o)
	if err != nil {
		return fail(err)
	}
	r.ours = closers
	return r, nil
}

func (r *Redlock) majority() int { return len(r.nodes)/2 + 1 }

// Acquire takes the lock name on a majority of the servers, waiting until it is
// free or ctx is done. Without competition it is one round trip to all servers at
// once while their counters are in step, else two, and two more for the first
// lock.
//
// While no majority can be reached it asks again until ctx is done. An answer
// that would not change, such as a wrong password on a majority or a server that
// is listed twice, is returned at once.
func (r *Redlock) Acquire(ctx context.Context, name string) (*locks.Lease, error) {
	a, end, err := r.begin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer end()
	return a.acquire()
}

// TryAcquire takes the lock name if a majority of the servers has it free, and
// returns an error over locks.ErrHeld otherwise, also if several clients that
// tried at once have got no majority. Unlike Locker's it does not care for
// waiters. It takes at most three times RedlockOptions.NodeTimeout.
func (r *Redlock) TryAcquire(ctx context.Context, name string) (*locks.Lease, error) {
	a, end, err := r.begin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer end()
	return a.try()
}

// begin begins an attempt, of both ways to acquire.
func (r *Redlock) begin(ctx context.Context, name string) (*redlockAttempt, func(), error) {
	work, end, err := begin(ctx, r.ctx, &r.group, name)
	if err != nil {
		return nil, nil, err
	}
	a := &redlockAttempt{
		redlock: r,
		name:    name,
		keys:    newRedlockKeys(r.prefix, name),
		id:      locks.NewHolder(),
		caller:  ctx,
		ctx:     work,
	}
	return a, end, nil
}

// Close implements locks.Locker. Clients made by DialRedlock are closed when the
// last request has ended, also if ctx ends before.
func (r *Redlock) Close(ctx context.Context) error {
	r.stop()
	err := r.group.Close(ctx)
	if len(r.ours) == 0 {
		return err
	}
	if errors.Is(err, locks.ErrCancelled) {
		go func() {
			_ = r.group.Close(context.WithoutCancel(ctx))
			r.closeClients()
		}()
		return err
	}
	r.closeClients()
	return err
}

func (r *Redlock) closeClients() {
	for _, c := range r.ours {
		_ = c() // a second Close finds it closed
	}
}

// lineage names the numbering of one lock. The set is known since the first
// grant.
func (r *Redlock) lineage(name string) string {
	return locks.Lineage("redlock", redlockIdentity(*r.set.Load(), r.prefix, name))
}

// wakeup begins the channels of those who wait for these locks.
func (r *Redlock) wakeup() string { return wakeChannel(r.prefix) }
