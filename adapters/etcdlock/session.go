package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/locks"
)

// session is an etcd lease and the entries that hang on it. It is renewed until
// it ends, or is retired and empty, or the Locker closes; then it is revoked.
type session struct {
	*Locker
	id      clientv3.LeaseID
	turn    chan struct{} // held by the renewal under way
	changed chan struct{} // has an element when run should look again
	retired chan struct{} // closed when no new grant may hang on it

	mu       sync.Mutex
	sent     time.Time // just before the last renewal was sent
	entries  map[*entry]struct{}
	used     map[key]struct{} // keys that no other entry may have
	lowest   map[string]int   // by queue: all numbers below this one are used; 0 has no element
	orphans  map[key]struct{}
	retiring bool
	over     error // why it can no longer be trusted
	missing  bool  // etcd says that it does not know the lease
}

// enter gives e a key in the queue, unless the session takes no new grants. It
// uses keys again: etcd finds the end of a queue by looking at every key that
// has been in it since the history was last compacted.
func (s *session) enter(e *entry, queue string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retiring {
		return false
	}
	for n := s.lowest[queue]; ; n++ {
		k := keyOf(queue, s.id, n)
		if _, used := s.used[k]; !used {
			e.s, e.key, e.number = s, k, n
			s.used[k] = struct{}{}
			s.lowest[queue] = n + 1
			s.entries[e] = struct{}{}
			return true
		}
	}
}

// leave ends e's part in the session. Its goroutine looks at that only when it
// is to end.
func (s *session) leave(e *entry) {
	s.mu.Lock()
	delete(s.entries, e)
	if _, orphan := s.orphans[e.key]; !orphan && !e.foreign {
		delete(s.used, e.key)
		switch queue := e.key.queue(); {
		case e.number == 0:
			delete(s.lowest, queue)
		case e.number < s.lowest[queue]:
			s.lowest[queue] = e.number
		}
	}
	ending := s.retiring || s.closing.Err() != nil
	s.mu.Unlock()
	if ending {
		s.poke()
	}
}

func (s *session) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// orphan retires the session because e's key may be in etcd, now or later. Each
// renewal from here on removes it, and in the end the lease takes it along.
func (s *session) orphan(e *entry) {
	s.mu.Lock()
	s.orphans[e.key] = struct{}{}
	s.retireLocked()
	s.mu.Unlock()
	s.poke()
}

// retire ends new grants on the session, because a key of it could not be
// removed. It is renewed while it has entries, and then revoked.
func (s *session) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retireLocked()
}

func (s *session) retireLocked() {
	if !s.retiring {
		s.retiring = true
		close(s.retired)
	}
}

// end says that the session's time is over, or (missing) that etcd no longer
// has its lease.
func (s *session) end(reason error, missing bool) {
	s.mu.Lock()
	s.retireLocked()
	s.missing = s.missing || missing
	var entries []*entry
	if s.over == nil {
		s.over = reason
		for e := range s.entries {
			if e.rev != 0 {
				entries = append(entries, e)
			}
		}
	}
	s.mu.Unlock()
	for _, e := range entries {
		e.lose(reason)
	}
	s.poke()
}

// usable reports whether a grant may hang on the session.
func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.retiring && locks.Elapsed(s.sent) < s.validity()
}

// fresh reports whether a grant would have at least half of its time.
func (s *session) fresh() bool { return locks.Elapsed(s.lastSent()) < s.validity()/2 }

func (s *session) lastSent() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// exists reports whether etcd may still have the lease and its keys.
func (s *session) exists() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.missing
}

// run is the session's goroutine.
func (s *session) run() {
	every := s.validity() / 3
	next := s.lastSent().Add(every)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.wanted() {
		if left := s.validity() - locks.Elapsed(s.lastSent()); left <= 0 {
			s.end(fmt.Errorf("its time of %v was over before it was renewed", s.validity()), false)
			break
		}
		if !time.Now().Before(next) {
			ctx, cancel := context.WithTimeout(s.closing, min(every, s.opts.requestTimeout()))
			err := s.renew(ctx)
			cancel()
			if err != nil && s.closing.Err() == nil {
				s.log.Warn("etcdlock: renewal", "lease", fmt.Sprintf("%x", s.id), "error", err)
				next = time.Now().Add(every / 4)
			} else {
				next = s.lastSent().Add(every)
			}
		}
		// In parts, because a timer does not count the time that the machine slept.
		timer.Reset(max(min(time.Until(next), s.validity()/8), 0))
		select {
		case <-timer.C:
		case <-s.changed:
		case <-s.closing.Done():
		}
	}
	for s.busy() {
		<-s.changed // every entry leaves: each way out is bounded
	}
	s.revoke()
}

func (s *session) wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over == nil && s.closing.Err() == nil && (!s.retiring || len(s.entries) > 0)
}

func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries) > 0
}

// revoke gives the lease back, with all keys that are left on it. It tries until
// etcd has forgotten the lease by itself.
func (s *session) revoke() {
	s.end(errors.New("the shared lease was given back"), false)
	for pause := time.Duration(0); s.exists() && (pause == 0 || locks.Elapsed(s.lastSent()) < s.opts.ttl()); {
		time.Sleep(pause)
		pause = min(max(2*pause, retryPause), time.Second)
		ctx, cancel := s.detached()
		_, err := s.client.Revoke(ctx, s.id)
		cancel()
		if err == nil || leaseGone(err) {
			return
		}
		s.log.Warn("etcdlock: revoke", "lease", fmt.Sprintf("%x", s.id), "error", err)
	}
}
