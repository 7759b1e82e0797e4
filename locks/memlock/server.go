package memlock

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// MinTTL is the shortest lease time. Below it the time that remains after the
// safety margin of locks.Validity would be too short to be of use.
const MinTTL = 10 * time.Millisecond

// MaxNumber is the number from which on a Server takes no new attempts: Take
// then returns an error over locks.ErrUnsupported. What is left of 64 bits is for
// those that wait.
const MaxNumber uint64 = math.MaxUint64 - 1<<32

// ServerOptions are the settings of a Server. A nil *ServerOptions has the
// defaults.
type ServerOptions struct {
	// ID is the server's part of the lineage of its tokens, by default 128
	// random bits. Two servers must never have the same one, nor one server
	// after its process has started again: numbers start again with it.
	ID string

	// First is the number of the first grant, by default 1, and at most
	// MaxNumber: a Server that is past it grants nothing.
	First uint64
}

func (o *ServerOptions) id() string {
	if o == nil || o.ID == "" {
		return rand.Text()
	}
	return o.ID
}

func (o *ServerOptions) first() uint64 {
	if o == nil || o.First == 0 {
		return 1
	}
	return o.First
}

// Server keeps locks in memory: who holds each of them, until when, and who
// waits. It is the Backend of Lockers in its own process. Its methods may be
// called concurrently. It has no goroutine and needs no Close.
type Server struct {
	id string

	mu       sync.Mutex
	next     uint64 // one sequence for all names, so that a name leaves nothing behind
	queues   map[string]*list.List
	finished finished
}

var _ Backend = (*Server)(nil)

// NewServer makes a Server without locks.
func NewServer(o *ServerOptions) *Server {
	return &Server{id: o.id(), next: o.first(), queues: make(map[string]*list.List)}
}

// entry is the place of one attempt in the queue of a name. The first of a
// queue holds the lock.
type entry struct {
	name    string
	id      string
	ttl     time.Duration
	token   fence.Token // zero while it waits
	expires time.Time
	timer   *time.Timer
	elem    *list.Element
	waiting int           // calls of Wait under way; it does not expire meanwhile
	changed chan struct{} // closed when the entry is granted the lock or removed
	removed bool
}

// Take implements Backend.
func (s *Server) Take(ctx context.Context, a Attempt) (fence.Token, error) {
	if err := a.check(); err != nil {
		return fence.Token{}, err
	}
	if err := ctx.Err(); err != nil {
		return fence.Token{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished.has(a.ID) {
		return fence.Token{}, lost("acquire", a.Name, "this attempt has ended")
	}
	s.expireHolder(a.Name)
	e := s.find(a.Name, a.ID)
	if e == nil {
		if q := s.queues[a.Name]; q != nil && !a.Queue {
			return fence.Token{}, held(a.Name)
		}
		if s.next > MaxNumber {
			return fence.Token{}, &locks.Error{Op: "acquire", Name: a.Name, Kind: locks.ErrUnsupported,
				Err: errors.New("the numbers are used up; use a new Server")}
		}
		e = s.add(a)
	} else {
		e.ttl = a.TTL
		s.extend(e)
	}
	if e.token.IsZero() {
		return fence.Token{}, held(a.Name)
	}
	return e.token, nil
}

// Wait implements Backend.
func (s *Server) Wait(ctx context.Context, name, id string) error {
	s.mu.Lock()
	e := s.find(name, id)
	if e == nil {
		s.mu.Unlock()
		return lost("acquire", name, "its place in the queue is gone")
	}
	if !e.token.IsZero() {
		s.mu.Unlock()
		return nil
	}
	e.waiting++
	e.timer.Stop()
	changed := e.changed
	s.mu.Unlock()

	select {
	case <-changed:
	case <-ctx.Done():
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	e.waiting--
	switch {
	case e.removed:
		return lost("acquire", name, "its place in the queue is gone")
	case !e.token.IsZero():
		return nil
	}
	s.extend(e)
	return ctx.Err()
}

// Renew implements Backend.
func (s *Server) Renew(ctx context.Context, name, id string, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireHolder(name)
	e := s.find(name, id)
	if e == nil || e.token.IsZero() {
		return lost("renew", name, "this attempt does not hold the lock")
	}
	e.ttl = ttl
	s.extend(e)
	return nil
}

// Release implements Backend. It does not look at ctx.
func (s *Server) Release(_ context.Context, name, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireHolder(name)
	e := s.find(name, id)
	if e == nil {
		s.finished.add(id)
		return lost("release", name, "this attempt has no entry")
	}
	s.remove(e)
	return nil
}

// Entry is one attempt that holds a lock or waits for it.
type Entry struct {
	ID    string      // of the attempt; Release(ctx, name, ID) removes the entry
	Token fence.Token // zero while it waits
}

// Entries returns the holder of the lock and then those that wait, in the order
// in which they will be served. It is empty if the lock is free.
func (s *Server) Entries(name string) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireHolder(name)
	var all []Entry
	for e := range s.entries(name) {
		all = append(all, Entry{ID: e.id, Token: e.token})
	}
	return all
}

// Expire ends the holder's lease time now, as if it had passed without a
// renewal, and grants the lock to the next waiter. It reports whether the lock
// was held. The holder learns of it at its next renewal.
func (s *Server) Expire(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.entries(name) {
		s.remove(e)
		return true
	}
	return false
}

func (s *Server) entries(name string) func(yield func(*entry) bool) {
	return func(yield func(*entry) bool) {
		q := s.queues[name]
		if q == nil {
			return
		}
		for el := q.Front(); el != nil; el = el.Next() {
			if !yield(el.Value.(*entry)) {
				return
			}
		}
	}
}

func (s *Server) find(name, id string) *entry {
	for e := range s.entries(name) {
		if e.id == id {
			return e
		}
	}
	return nil
}

// add appends an entry to the queue; the first is granted the lock at once.
func (s *Server) add(a Attempt) *entry {
	q := s.queues[a.Name]
	if q == nil {
		q = list.New()
		s.queues[a.Name] = q
	}
	e := &entry{name: a.Name, id: a.ID, ttl: a.TTL, changed: make(chan struct{})}
	e.elem = q.PushBack(e)
	e.timer = time.AfterFunc(e.ttl, func() { s.expire(e) })
	e.expires = time.Now().Add(e.ttl)
	if q.Len() == 1 {
		s.grant(e)
	}
	return e
}

// grant mints the token of e, which is the first of its queue.
func (s *Server) grant(e *entry) {
	e.token = fence.Token{Lineage: s.lineage(e.name), Seq: s.next, Holder: e.id}
	s.next++
	s.extend(e)
	close(e.changed)
}

func (s *Server) extend(e *entry) {
	e.expires = time.Now().Add(e.ttl)
	if e.token.IsZero() && e.waiting > 0 {
		return
	}
	e.timer.Reset(e.ttl)
}

// remove takes e out of its queue and grants the lock to the next in it if e
// held it. One waiter wakes.
func (s *Server) remove(e *entry) {
	q := s.queues[e.name]
	q.Remove(e.elem)
	e.timer.Stop()
	e.removed = true
	s.finished.add(e.id)
	if e.token.IsZero() {
		close(e.changed)
	}
	switch first := q.Front(); {
	case first == nil:
		delete(s.queues, e.name)
	case !e.token.IsZero():
		s.grant(first.Value.(*entry))
	}
}

// expire is called by the timer of e, which may have been moved meanwhile.
func (s *Server) expire(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.removed || e.token.IsZero() && e.waiting > 0 {
		return
	}
	if left := time.Until(e.expires); left > 0 {
		e.timer.Reset(left)
		return
	}
	s.remove(e)
}

// expireHolder does what the holder's timer will do, in case it is late.
func (s *Server) expireHolder(name string) {
	for e := range s.entries(name) {
		if !e.token.IsZero() && !time.Now().Before(e.expires) {
			s.remove(e)
		}
		return
	}
}

func held(name string) error {
	return &locks.Error{Op: "acquire", Name: name, Kind: locks.ErrHeld}
}

func lost(op, name, why string) error {
	return &locks.Error{Op: op, Name: name, Kind: locks.ErrLost, Err: errors.New(why)}
}

func checkTTL(ttl time.Duration) error {
	if ttl >= MinTTL {
		return nil
	}
	return &locks.Error{Op: "new", Kind: locks.ErrBadOption,
		Err: fmt.Errorf("the lease time is %v; give at least %v", ttl, MinTTL)}
}
