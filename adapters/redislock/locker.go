package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
)

var _ locks.Locker = (*Locker)(nil)

// Locker acquires locks on one Redis server, or through Sentinel or a Cluster.
// It is safe for concurrent use. Make it with New or Dial.
type Locker struct {
	client         Client
	closeClient    func() error // nil: the client is the caller's
	options        *Options
	prefix         string
	ttl            time.Duration
	requestTimeout time.Duration
	keepsDeadlines bool        // the client does
	slow           atomic.Bool // the server has not answered soon
	claim          time.Duration
	channels       string // begins the channels of all Lockers
	replicas       int
	shutOut        time.Duration // how long a withdrawn attempt is remembered
	log            hclog.Logger

	group locks.Group
	wakes wakes
	ctx   context.Context // ends with Close
	stop  context.CancelFunc

	self      string        // the Locker's name in its holders and its channel
	attempts  atomic.Uint64 // so far
	tag       string        // of this Locker's requests
	asked     atomic.Uint64 // requests so far
	checked   atomic.Bool
	checking  chan struct{} // a lock that a context can interrupt
	noPublish sync.Once
}

// New returns a Locker on client, which stays the caller's: Close does not close
// it. nil options are the defaults. It makes no request. The error is over
// locks.ErrBadOption.
func New(client Client, o *Options) (*Locker, error) {
	if isNil(client) {
		return nil, badOption(errors.New("the client is nil"))
	}
	if _, isRing := client.(*redis.Ring); isRing {
		return nil, badOption(errors.New("the client is a *redis.Ring, which moves a held lock to another server " +
			"when its own does not answer; use one server, Sentinel or a Cluster"))
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o != nil {
		own := *o // the caller may use its own for the next Locker
		o = &own
	}
	if o.waitReplicas() > 0 {
		_, isCluster := client.(cluster)
		if _, ok := client.(pipeliner); !ok && !isCluster {
			return nil, badOption(fmt.Errorf("WaitReplicas needs a client with pipelines, and a %T has none", client))
		}
	}
	l := &Locker{
		client:         client,
		options:        o,
		prefix:         o.prefix(),
		ttl:            o.ttl(),
		requestTimeout: o.requestTimeout(),
		// WAIT takes as long as the replicas do.
		keepsDeadlines: keepsDeadlines(client) && o.waitReplicas() == 0,
		claim:          o.claimTime(),
		channels:       channelOf(o.prefix()),
		replicas:       o.waitReplicas(),
		shutOut:        2*o.ttl() + time.Minute,
		log:            o.logger(),
		self:           locks.NewHolder(),
		tag:            rand.Text(),
		checking:       make(chan struct{}, 1),
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.wakes.locker = l
	return l, nil
}

// Acquire takes the lock name, waiting for its turn or until ctx is done: waiters
// are served in the order in which the server came to know them. Without
// competition it is one round trip, and one more for the Locker's first lock.
// While the server cannot be reached or is loading, failing over or read-only,
// it asks again until ctx is done. An answer that would not change, such as a
// wrong password, is returned at once over locks.ErrUnreachable.
//
// When it returns the grant is in the server's memory; whether it is on disk or
// on a replica is up to the server's configuration and Options.WaitReplicas.
func (l *Locker) Acquire(ctx context.Context, name string) (*locks.Lease, error) {
	a, end, err := l.begin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer end()
	return a.acquire()
}

// TryAcquire takes the lock name if it is free and nobody waits for it, and
// returns an error over locks.ErrHeld otherwise. It takes at most
// Options.RequestTimeout, and 100 ms more if the server does not answer.
func (l *Locker) TryAcquire(ctx context.Context, name string) (*locks.Lease, error) {
	a, end, err := l.begin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer end()
	return a.try()
}

// begin begins an attempt, of both ways to acquire.
func (l *Locker) begin(ctx context.Context, name string) (*attempt, func(), error) {
	work, end, err := begin(ctx, l.ctx, &l.group, name)
	if err != nil {
		return nil, nil, err
	}
	a := &attempt{
		locker: l,
		name:   name,
		keys:   newKeys(l.prefix, name),
		id:     l.newID(),
		caller: ctx,
		ctx:    work,

		arrival: "0",
	}
	return a, end, nil
}

// begin checks what every attempt begins with. work ends with the caller's context
// or with life, which is that of what the group belongs to; end ends both.
func begin(caller, life context.Context, group *locks.Group, name string) (work context.Context, end func(), err error) {
	if err := locks.CheckName(name); err != nil {
		return nil, nil, err
	}
	leave, err := group.Begin("acquire", name)
	if err != nil {
		return nil, nil, err
	}
	if caller.Err() != nil {
		leave()
		return nil, nil, locks.Cancelled(caller, name, nil)
	}
	work, cancel := context.WithCancel(caller)
	stop := context.AfterFunc(life, cancel)
	return work, func() { stop(); cancel(); leave() }, nil
}

// newID is unique per attempt, and names the Locker, which its messages reach.
func (l *Locker) newID() string {
	return l.self + "." + strconv.FormatUint(l.attempts.Add(1), 10)
}

// Close implements locks.Locker. A client made by Dial is closed when the last
// request has ended, also if ctx ends before.
func (l *Locker) Close(ctx context.Context) error {
	l.stop()
	err := l.group.Close(ctx)
	if l.closeClient == nil {
		return err
	}
	if errors.Is(err, locks.ErrCancelled) {
		go func() {
			_ = l.group.Close(context.WithoutCancel(ctx))
			_ = l.closeClient()
		}()
		return err
	}
	_ = l.closeClient() // a second Close finds it closed
	return err
}
