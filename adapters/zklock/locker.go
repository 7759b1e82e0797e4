package zklock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

var _ locks.Locker = (*Locker)(nil)

// Locker takes locks at one ZooKeeper ensemble. Its methods may be called
// concurrently.
type Locker struct {
	opts    *Options
	root    string
	session sessionConfig
	group   locks.Group

	mu       sync.Mutex
	current  *session
	sessions map[*session]struct{}

	warned sync.Map // lock nodes whose numbers run out: logged once
	spent  sync.Map // lock nodes whose numbers have run out: looked at before a number is used

	open    context.Context // ends when Close is called
	close   context.CancelFunc
	closing sync.Once
	closed  chan struct{}
	result  error // of Close
}

// Dial connects to the servers of "zk://host:port,host:port/root"; a user and
// password before the hosts ("zk://user:password@...") are digest
// authentication, 2181 is the default port, and zk:// may be left out. The path
// is Options.Root. A nil opts means the defaults.
//
// It returns when the session is there, or after Options.RequestTimeout or 3 s,
// whichever is longer. Its errors are over
// locks.ErrBadOption (the address, an option, or a session timeout that the
// server does not keep), locks.ErrUnsupported (the server is older than 3.5; a
// server that does not tell its version is believed to be newer) and
// locks.ErrUnreachable. The caller must close the Locker.
func Dial(servers string, opts *Options) (*Locker, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	addr, err := parseAddress(servers)
	if err != nil {
		return nil, err
	}
	root, auth, err := addr.settle(opts)
	if err != nil {
		return nil, err
	}
	l := &Locker{
		opts:     opts,
		root:     root,
		sessions: make(map[*session]struct{}),
		closed:   make(chan struct{}),
	}
	l.open, l.close = context.WithCancel(context.Background())
	l.session = sessionConfig{servers: addr.servers, opts: opts, auth: auth, log: opts.logger(), over: l.sessionOver}
	if err := l.greet(); err != nil {
		_ = l.Close(context.Background())
		return nil, err
	}
	return l, nil
}

// dialPatience is for Dial with a session so short that its request timeout is
// no measure for a first connection.
const dialPatience = 3 * time.Second

// greet opens the first session and looks whether the server keeps what the
// options ask for.
func (l *Locker) greet() error {
	ctx, cancel := context.WithTimeout(context.Background(), max(l.opts.requestTimeout(), dialPatience))
	defer cancel()
	s, err := l.join()
	if err != nil {
		return unreachable("dial", "", err)
	}
	defer s.leave()
	if err := s.await(ctx); err != nil {
		return translate("dial", "", err)
	}
	asked, got := l.opts.sessionTimeout(), s.negotiated()
	if l.opts != nil && l.opts.SessionTimeout != 0 && got != asked {
		return badOption("SessionTimeout is %v, the server keeps sessions for %v; see its minSessionTimeout and maxSessionTimeout", asked, got)
	}
	if locks.Validity(got) <= 0 {
		return badOption("the server's session timeout of %v is too short", got)
	}
	return checkVersion(ctx, s)
}

// Acquire waits until the lock is granted or ctx is done. If its entry is
// deleted by hand while it waits, it joins the queue again, at the end.
func (l *Locker) Acquire(ctx context.Context, name string) (*locks.Lease, error) {
	return l.acquire(ctx, name, false)
}

// TryAcquire returns an error over locks.ErrHeld if somebody has the lock or
// waits for it. It looks before it creates an entry, so that this uses up no
// number.
func (l *Locker) TryAcquire(ctx context.Context, name string) (*locks.Lease, error) {
	return l.acquire(ctx, name, true)
}

func (l *Locker) acquire(ctx context.Context, name string, try bool) (*locks.Lease, error) {
	if err := locks.CheckName(name); err != nil {
		return nil, err
	}
	end, err := l.group.Begin("acquire", name)
	if err != nil {
		return nil, err
	}
	defer end()
	work, cancel := l.within(ctx, try)
	defer cancel()

	var seen error
	pause := 5 * time.Millisecond
	for {
		var lease *locks.Lease
		err := errors.New("not tried")
		if ctx.Err() == nil {
			lease, err = l.attempt(work, name, try, &seen)
		}
		_, ours := errors.AsType[*locks.Error](err)
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			if seen == nil && errors.Is(err, errAway) && !l.connected() {
				seen = unreachable("acquire", name, err)
			}
			return nil, locks.Cancelled(ctx, name, seen)
		case l.open.Err() != nil:
			return nil, &locks.Error{Op: "acquire", Name: name, Kind: locks.ErrClosed}
		case ours || refused(err):
			return nil, translate("acquire", name, err)
		case work.Err() != nil: // the time of TryAcquire
			return nil, unreachable("acquire", name, err)
		}
		if !errors.Is(err, errGone) && !errors.Is(err, errRetired) {
			seen = unreachable("acquire", name, err)
		}
		sleep(work, pause/2+rand.N(pause))
		pause = min(2*pause, time.Second)
	}
}

// within returns a context that ends with ctx, with Close, and for a
// TryAcquire with its time.
func (l *Locker) within(ctx context.Context, try bool) (context.Context, context.CancelFunc) {
	var work context.Context
	var cancel context.CancelFunc
	if try {
		work, cancel = context.WithTimeout(ctx, l.opts.requestTimeout())
	} else {
		work, cancel = context.WithCancel(ctx)
	}
	stop := context.AfterFunc(l.open, cancel)
	return work, func() {
		stop()
		cancel()
	}
}

// join returns the session for a new grant; the caller must leave it.
func (l *Locker) join() (*session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && l.current.join() {
		return l.current, nil
	}
	for s := range l.sessions {
		select {
		case <-s.done:
			delete(l.sessions, s)
		default:
		}
	}
	s, err := openSession(l.session)
	if err != nil {
		return nil, err
	}
	l.current = s
	l.sessions[s] = struct{}{}
	s.join()
	return s, nil
}

func (l *Locker) connected() bool {
	l.mu.Lock()
	s := l.current
	l.mu.Unlock()
	return s != nil && !s.isAway()
}

// sessionOver is called by a session that gets no new grant.
func (l *Locker) sessionOver(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == s {
		l.current = nil
	}
}

// Close releases every lease, ends the sessions, and returns when no goroutine
// and no connection is left. A session that cannot be ended because the server
// is away ends there by its timeout, and its entries with it.
func (l *Locker) Close(ctx context.Context) error {
	l.closing.Do(func() {
		l.close()
		go func() {
			defer close(l.closed)
			l.result = l.group.Close(context.WithoutCancel(ctx))
			l.mu.Lock()
			left := slices.Collect(maps.Keys(l.sessions))
			l.mu.Unlock()
			for _, s := range left {
				s.stop()
			}
			for _, s := range left {
				<-s.done
			}
		}()
	})
	select {
	case <-l.closed:
		return l.result
	default:
	}
	select {
	case <-l.closed:
		return l.result
	case <-ctx.Done():
		return &locks.Error{Op: "close", Kind: locks.ErrCancelled, Err: fmt.Errorf("%w: cleanup goes on", ctx.Err())}
	}
}

// sleep waits, and returns false if ctx ends first.
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
