package zklock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/locks"
)

// session is one session of ZooKeeper, over as many connections as it lives.
// The client library would silently begin another one after an expiry; a
// session of this type then is dead, and refuses to connect again.
type session struct {
	config sessionConfig
	conn   *zk.Conn
	events <-chan zk.Event // closed when the library's goroutines have ended
	ctx    context.Context // ends dialling
	cancel context.CancelFunc
	slots  chan struct{} // bounds the library's calls, which take no context
	work   sync.WaitGroup
	next   chan func()   // for goroutines that rest; closed when the session stops
	done   chan struct{} // closed when nothing of the session is left

	deadCh    chan struct{} // closed when it is dead
	retiredCh chan struct{} // closed when it is retired

	mu          sync.Mutex
	changed     chan struct{} // closed, and replaced, with each change of what follows
	wire        *wire         // the last connection
	id          int64
	timeout     time.Duration // as negotiated; until then as asked for
	proven      time.Time     // the leader keeps the session for its timeout from then, or longer
	established bool          // there was a connection
	connected   bool          // there is one
	authed      bool
	awaySince   time.Time // when the connection was lost
	lastErr     error     // why there is none
	dead        error
	retired     bool // gets no new grant, and ends when nobody refers to it
	stopping    bool // its calls are over
	resting     int  // goroutines that wait for next
	refs        int
	members     map[*member]struct{}
	lastBeat    time.Time
	watches     map[string]*watched
	root        *zk.Stat // see rootStat
}

type sessionConfig struct {
	servers []string
	opts    *Options
	auth    *Auth
	log     hclog.Logger
	over    func(*session) // it gets no new grant; may be called more than once
}

// maxCalls bounds the calls of the library that are under way in one session.
const maxCalls = 512

// openSession begins to connect and returns at once.
func openSession(config sessionConfig) (*session, error) {
	s := &session{
		config:    config,
		slots:     make(chan struct{}, maxCalls),
		next:      make(chan func(), maxResting),
		done:      make(chan struct{}),
		deadCh:    make(chan struct{}),
		retiredCh: make(chan struct{}),
		changed:   make(chan struct{}),
		timeout:   config.opts.sessionTimeout(),
		awaySince: time.Now(),
		authed:    config.auth == nil,
		members:   make(map[*member]struct{}),
		watches:   make(map[string]*watched),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	hosts := &hosts{over: s.isOver}
	var err error
	s.conn, s.events, err = zk.Connect(config.servers, s.timeout,
		zk.WithHostProvider(hosts),
		zk.WithDialer(func(_, server string, _ time.Duration) (net.Conn, error) { return s.dial(hosts, server) }),
		zk.WithEventCallback(s.event),
		zk.WithLogger(libraryLog{config.log}),
	)
	if err != nil {
		s.cancel()
		return nil, err
	}
	go s.run()
	return s, nil
}

// libraryLog takes what the library would print to the standard logger.
type libraryLog struct{ log hclog.Logger }

func (l libraryLog) Printf(format string, args ...any) {
	if l.log.IsDebug() {
		l.log.Debug("zklock: client library: " + fmt.Sprintf(format, args...))
	}
}

// event is called by the library, which must not be kept waiting.
func (s *session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.State {
	case zk.StateHasSession:
		s.established, s.connected, s.lastErr = true, true, nil
		s.lastBeat = time.Time{} // look at once what the time away has cost
	case zk.StateDisconnected:
		if s.connected {
			s.connected, s.awaySince = false, time.Now()
		}
	default:
		return
	}
	s.broadcast()
}

// handshake is called by the connection with the server's answer.
func (s *session) handshake(h handshake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case h.session == 0:
		s.dieLocked(errExpired)
	case s.established && h.session != s.id:
		s.dieLocked(errors.New("the client library began another session"))
	case s.established && h.timeout < s.timeout:
		// Its grants count on more.
		s.dieLocked(fmt.Errorf("another server keeps the session for %v only, not %v", h.timeout, s.timeout))
	default:
		if asked := s.config.opts.sessionTimeout(); h.timeout != asked && !s.established {
			s.config.log.Info("zklock: session timeout negotiated", "asked", asked, "got", h.timeout)
		}
		s.id, s.timeout = h.session, h.timeout
		s.proveLocked(h.sent)
	}
}

func (s *session) prove(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proveLocked(sent)
}

func (s *session) proveLocked(sent time.Time) {
	if sent.After(s.proven) {
		s.proven = sent
	}
}

// lease returns the time from which the leader counts, and how long a grant
// can be trusted from then.
func (s *session) lease() (sent time.Time, validity time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven, locks.Validity(s.timeout)
}

func (s *session) negotiated() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// await returns when the session can be used, or with an error over
// errAway, or over why it is dead.
func (s *session) await(ctx context.Context) error {
	for {
		s.mu.Lock()
		usable, dead, changed := s.connected && s.authed, s.dead, s.changed
		s.mu.Unlock()
		switch {
		case dead != nil:
			return dead
		case usable:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s.away()
		}
	}
}

// away is an error over errAway, with the reason if one is known.
func (s *session) away() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awayLocked()
}

func (s *session) awayLocked() error {
	if s.lastErr == nil {
		return errAway
	}
	return fmt.Errorf("%w: %w", errAway, s.lastErr)
}

// broken is called with why a connection is of no use.
func (s *session) broken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastErr = err
}

// join makes the session live on until leave; not if it gets no new grants.
func (s *session) join() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || s.dead != nil || s.stopping {
		return false
	}
	s.refs++
	return true
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refs--
	if s.refs == 0 && s.retired {
		s.broadcast()
	}
}

// retire lets the session end when nobody refers to it any more, and with that
// every entry whose removal could not be confirmed.
func (s *session) retire(reason string) {
	s.mu.Lock()
	if !s.retired {
		s.retired = true
		close(s.retiredCh)
		s.broadcast()
		s.config.log.Warn("zklock: session retired", "session", fmt.Sprintf("%#x", uint64(s.id)), "reason", reason)
	}
	s.mu.Unlock()
	s.config.over(s)
}

// stop ends the session now.
func (s *session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dieLocked(errClosing)
}

// dieLocked ends the session: the server has forgotten it, or will.
func (s *session) dieLocked(reason error) {
	if s.dead != nil {
		return
	}
	s.dead = reason
	close(s.deadCh)
	s.broadcast()
}

func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead != nil || s.stopping
}

func (s *session) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// connection returns the last connection. It is nil before the first one.
func (s *session) connection() *wire {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wire
}

func (s *session) isAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.connected
}

func (s *session) isRetired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retired
}

func (s *session) sessionID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// shutdown ends the session at the server, if that is there, and everything of
// it here.
func (s *session) shutdown() {
	s.mu.Lock()
	s.stopping = true
	close(s.next)
	s.resting = 0
	connected := s.connected
	s.mu.Unlock()
	if !connected {
		s.cancel() // of a connection under way
	}
	s.conn.Close() // waits a second at most for the answer
	s.cancel()
	if w := s.connection(); w != nil {
		w.Close()
	}
	for range s.events {
	}
	s.work.Wait()
}
