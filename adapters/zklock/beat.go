package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/locks"
)

// member is the node of one grant of the session.
type member struct {
	path    string
	since   time.Time
	control locks.Control
}

// The bounds of one transaction. A server hangs up on a request of more than
// jute.maxbuffer, by default 1 MiB, and a path may have 13 KiB.
const (
	maxChecks    = 256
	maxCheckSize = 256 << 10
)

// beatEvery is the time from one transaction that proves the session alive to
// the next. What one proves is a quarter of the timeout ago, and up to the
// distance of two transactions more; so that when the next one is due, half of
// the timeout is left for it and those after it.
func beatEvery(timeout time.Duration) time.Duration { return timeout / 8 }

// addMember has the grant renewed until dropMember. If the session is dead the
// grant is lost.
func (s *session) addMember(m *member) {
	s.mu.Lock()
	dead := s.dead
	if dead == nil {
		s.members[m] = struct{}{}
		if len(s.members) == 1 {
			s.broadcast() // the session's goroutine has something to wait for
		}
	}
	s.mu.Unlock()
	if dead != nil {
		m.control.Lose(dead)
	}
}

func (s *session) dropMember(m *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, m)
}

// run is the session's goroutine: it introduces the session to the server,
// renews its grants, and ends it.
func (s *session) run() {
	defer close(s.done)
	for {
		s.mu.Lock()
		changed := s.changed
		s.expireLocked()
		over := s.dead != nil || s.retired && s.refs == 0
		greet := s.connected && !s.authed
		nap, beat := s.napLocked()
		s.mu.Unlock()
		switch {
		case over:
			s.end()
			return
		case greet:
			s.introduce()
			continue
		case beat:
			s.beat()
			continue
		}
		timer := time.NewTimer(nap)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// end tells the grants and closes the session.
func (s *session) end() {
	s.mu.Lock()
	s.dieLocked(errClosing)
	dead := s.dead
	var lost []*member
	for m := range s.members {
		lost = append(lost, m)
	}
	s.mu.Unlock()
	for _, m := range lost {
		m.control.Lose(dead)
	}
	s.config.over(s)
	s.shutdown()
}

// expireLocked gives up a session that has had no connection for so long that
// the server has let it expire, or would not take it back: one that lost its
// data refuses clients that have seen newer.
func (s *session) expireLocked() {
	if !s.connected && s.established && time.Since(s.awaySince) >= 2*s.timeout {
		s.dieLocked(fmt.Errorf("no connection for twice the session timeout of %v: %w", s.timeout, s.awayLocked()))
	}
}

// napLocked is the time until the next transaction is due, or until the session
// is given up; beat is true if the transaction is due now.
func (s *session) napLocked() (nap time.Duration, beat bool) {
	if !s.connected {
		if !s.established {
			return time.Hour, false
		}
		return time.Until(s.awaySince.Add(2 * s.timeout)), false
	}
	if len(s.members) == 0 {
		return time.Hour, false
	}
	every := beatEvery(s.timeout)
	due := s.lastBeat
	if due.IsZero() {
		due = s.proven.Add(-every) // a new connection has proven itself; look at the nodes
	}
	oldest := time.Time{}
	for m := range s.members {
		if oldest.IsZero() || m.since.Before(oldest) {
			oldest = m.since
		}
	}
	if oldest.After(due) {
		due = oldest // a new grant needs none before its time
	}
	nap = time.Until(due.Add(every))
	return nap, nap <= 0
}

// introduce presents the identity. The library repeats it on later
// connections.
func (s *session) introduce() {
	ctx, cancel := context.WithTimeout(s.ctx, s.dialTimeout())
	defer cancel()
	auth := s.config.auth
	c, err := s.start(ctx, func(c *zk.Conn) error { return c.AddAuth(auth.Scheme, auth.Credential) })
	if err == nil {
		err = c.finish(ctx, s.dialTimeout())
	}
	s.mu.Lock()
	switch {
	case err == nil:
		s.authed = true
		s.broadcast()
	case errors.Is(err, zk.ErrAuthFailed):
		s.dieLocked(&locks.Error{Op: "zklock: auth", Kind: locks.ErrBadOption,
			Err: fmt.Errorf("the server refused the identity of scheme %q", auth.Scheme)})
	default:
		s.lastErr = err
		s.connected, s.awaySince = false, time.Now()
	}
	w := s.wire
	s.mu.Unlock()
	if err != nil {
		w.Close()
	}
}

// beat proves that the session and the nodes of its grants are there, and
// renews these grants.
func (s *session) beat() {
	s.mu.Lock()
	s.lastBeat = time.Now()
	timeout := s.timeout
	var due []*member
	for m := range s.members {
		due = append(due, m)
	}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(s.ctx, timeout/2)
	defer cancel()
	for len(due) > 0 {
		var paths []string
		var asked []*member
		for size := 0; len(due) > 0 && len(paths) < maxChecks && size < maxCheckSize; {
			if m := due[0]; m.control.Wants() {
				paths, asked = append(paths, m.path), append(asked, m)
				size += len(m.path)
			}
			due = due[1:]
		}
		if len(paths) == 0 {
			return
		}
		missing, err := s.check(ctx, paths)
		switch {
		case err != nil:
			s.config.log.Warn("zklock: renewal", "grants", len(paths), "error", err)
			return
		case missing >= 0:
			gone := asked[missing]
			gone.control.Lose(fmt.Errorf("its node %s was deleted", gone.path))
			s.dropMember(gone)
			due = append(append(asked[:missing:missing], asked[missing+1:]...), due...)
		default:
			sent, _ := s.lease()
			for _, m := range asked {
				m.control.Renewed(sent)
			}
		}
	}
}
