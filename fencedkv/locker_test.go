package fencedkv_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// noLocker is never asked for a lock.
type noLocker struct{}

func (noLocker) Acquire(context.Context, string) (*locks.Lease, error) {
	return nil, errors.New("no lock is wanted here")
}
func (noLocker) TryAcquire(context.Context, string) (*locks.Lease, error) {
	return nil, errors.New("no lock is wanted here")
}
func (noLocker) Close(context.Context) error { return nil }

// testLocker grants every lock at once and lets the test take it away.
type testLocker struct {
	group    locks.Group
	validity time.Duration
	released func() error // called by the release of a lease; may be nil

	mu      sync.Mutex
	seq     uint64
	name    string
	control locks.Control
}

func (l *testLocker) Acquire(ctx context.Context, name string) (*locks.Lease, error) {
	end, err := l.group.Begin("acquire", name)
	if err != nil {
		return nil, err
	}
	defer end()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	l.name = name
	lease, control, err := l.group.NewLease(ctx, locks.Grant{
		Name:     name,
		Token:    fence.Token{Lineage: "test:" + name, Seq: l.seq, Holder: "h"},
		Sent:     time.Now(),
		Validity: l.validity,
		Release: func(context.Context) error {
			if l.released != nil {
				return l.released()
			}
			return nil
		},
	})
	l.control = control
	return lease, err
}

func (l *testLocker) TryAcquire(ctx context.Context, name string) (*locks.Lease, error) {
	return l.Acquire(ctx, name)
}

func (l *testLocker) Close(ctx context.Context) error { return l.group.Close(ctx) }

// lose ends the last lease, as a service would that gave the lock away.
func (l *testLocker) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.control.Lose(errors.New("the test took it away"))
}

var _ locks.Locker = (*testLocker)(nil)
