package memlock

import (
	"context"
	"errors"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// Backend is what a Locker asks of a Server. *Server is one; a client of a
// Server in another process uses one that carries the calls.
//
// # Implementing
//
// Hand on each call and its answer, and keep the kinds of error that the
// methods name: errors.Is must find them. Return any other error if the answer
// is not known; the Locker then repeats the call, which is safe because every
// call is idempotent by the id of the attempt. Return soon after ctx ends. The
// methods must be safe for concurrent use.
type Backend interface {
	// Take grants the lock to the attempt if nobody holds it and nobody waits,
	// and returns its token; its lease time runs from now. If the attempt holds
	// the lock already it returns the same token, and the lease time runs from
	// now. Otherwise it returns an error over locks.ErrHeld, and if a.Queue is
	// set the attempt has a place in the queue, kept for a lease time after its
	// last Take or Wait. An error over locks.ErrUnsupported means that the numbers
	// are used up: see MaxNumber. An error over locks.ErrLost means that this attempt
	// has ended (released or run out); a new one needs a new id.
	Take(ctx context.Context, a Attempt) (fence.Token, error)

	// Wait returns nil when the attempt has been granted the lock, ctx.Err()
	// when ctx has ended, and an error over locks.ErrLost if its place in the
	// queue is gone.
	Wait(ctx context.Context, name, id string) error

	// Renew starts the holder's lease time again. It returns an error over
	// locks.ErrLost if the attempt does not hold the lock, and never creates.
	Renew(ctx context.Context, name, id string, ttl time.Duration) error

	// Release removes the attempt's entry, whether it holds or waits, and ends
	// the attempt: a Take that arrives later, out of order, is refused. It
	// returns an error over locks.ErrLost if there was no entry.
	Release(ctx context.Context, name, id string) error
}

// Attempt is one attempt to take a lock.
type Attempt struct {
	Name  string
	ID    string        // unique per attempt, 1 to fence.MaxHolder bytes; the token's Holder
	TTL   time.Duration // the lease time, at least MinTTL
	Queue bool          // wait in the queue if the lock is held
}

func (a Attempt) check() error {
	if err := locks.CheckName(a.Name); err != nil {
		return err
	}
	if a.ID == "" || len(a.ID) > fence.MaxHolder {
		return &locks.Error{Op: "acquire", Name: a.Name, Kind: locks.ErrBadOption,
			Err: errors.New("the id of the attempt is empty or too long")}
	}
	return checkTTL(a.TTL)
}

// finished remembers the ids of the attempts that ended last, so that a late
// copy of a Take does not leave an entry that nobody knows of. Its bound is in
// number, which costs about a megabyte; an entry made by a still later copy
// runs out after its lease time.
type finished struct {
	ids  map[string]struct{}
	ring []string
	next int
}

const rememberedAttempts = 8192

func (f *finished) has(id string) bool {
	_, ok := f.ids[id]
	return ok
}

func (f *finished) add(id string) {
	if f.has(id) {
		return
	}
	if f.ids == nil {
		f.ids = make(map[string]struct{})
	}
	if len(f.ring) < rememberedAttempts {
		f.ring = append(f.ring, id)
	} else {
		delete(f.ids, f.ring[f.next])
		f.ring[f.next] = id
		f.next = (f.next + 1) % rememberedAttempts
	}
	f.ids[id] = struct{}{}
}
