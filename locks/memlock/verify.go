package memlock

import (
	"context"
	"errors"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

var (
	_ fence.Verifier = (*Server)(nil)
	_ fence.Verifier = (*Locker)(nil)
)

// Verify implements fence.Verifier: nil means that t is the token of the attempt
// that holds the lock resource now. If ctx has ended it returns ctx.Err().
func (s *Server) Verify(ctx context.Context, resource string, t fence.Token) error {
	if t.Lineage != s.lineage(resource) {
		return unverified(resource, t, fence.ErrNoVerifier, nil)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireHolder(resource)
	no := unverified(resource, t, fence.ErrNotGranted, nil)
	for holder := range s.entries(resource) {
		if holder.token == t {
			return nil
		}
		no.Current = holder.token
		break
	}
	return no
}

func (s *Server) lineage(name string) string { return locks.Lineage("mem", s.id+":"+name) }

// Verify implements fence.Verifier by asking the Backend, which must be one; a
// *Server is. It waits for a third of the lease time at most.
func (l *Locker) Verify(ctx context.Context, resource string, t fence.Token) error {
	end, err := l.group.Begin("verify", resource)
	if err != nil {
		return unverified(resource, t, fence.ErrNoAnswer, err)
	}
	defer end()
	v, ok := l.backend.(fence.Verifier)
	if !ok {
		return unverified(resource, t, fence.ErrNoAnswer, errors.New("the Backend of the Locker is no fence.Verifier"))
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.closing, cancel)()
	err = bounded(work, l.requestTimeout(), func(ctx context.Context) error { return v.Verify(ctx, resource, t) })
	if err == nil || errors.Is(err, fence.ErrNotGranted) || errors.Is(err, fence.ErrNoVerifier) {
		return err
	}
	kind := locks.ErrUnreachable
	if l.closing.Err() != nil {
		kind = locks.ErrClosed
	}
	err = &locks.Error{Op: "verify", Name: resource, Kind: kind, Err: err}
	return unverified(resource, t, fence.ErrNoAnswer, locks.Unanswered(ctx, resource, err))
}

func unverified(resource string, t fence.Token, reason, err error) *fence.UnverifiedError {
	return &fence.UnverifiedError{Resource: resource, Offered: t, Reason: reason, Err: err}
}
