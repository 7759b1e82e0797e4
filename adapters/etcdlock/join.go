package etcdlock

import (
	"context"
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// join returns an entry, not yet in etcd, on a session that takes grants.
func (l *Locker) join(ctx context.Context, name string) (*entry, error) {
	e := &entry{name: name, holder: locks.NewHolder(), gone: make(chan struct{})}
	queue := queueOf(l.opts.prefix(), name)
	for ctx.Err() == nil {
		s, err := l.session(ctx)
		if err != nil {
			return nil, err
		}
		if s.enter(e, queue) {
			return e, nil
		}
	}
	return nil, ctx.Err()
}

// session returns the current session, or opens one.
func (l *Locker) session(ctx context.Context) (*session, error) {
	if s := l.usable(); s != nil {
		return s, nil
	}
	select {
	case l.opening <- struct{}{}:
		defer func() { <-l.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := l.usable(); s != nil {
		return s, nil
	}
	ctx, cancel := l.request(ctx)
	defer cancel()
	s, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.current = s
	l.mu.Unlock()
	l.group.Go(s.run)
	return s, nil
}

func (l *Locker) usable() *session {
	l.mu.Lock()
	s := l.current
	l.mu.Unlock()
	if s == nil || !s.usable() {
		return nil
	}
	return s
}

func (l *Locker) open(ctx context.Context) (*session, error) {
	if err := l.checkVersion(ctx); err != nil {
		return nil, err
	}
	ttl := l.opts.ttl()
	sent := time.Now()
	granted, err := l.client.Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return nil, err // a lease without keys may be left, until its TTL is over
	}
	s := &session{
		Locker:  l,
		id:      granted.ID,
		turn:    make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
		retired: make(chan struct{}),
		sent:    sent,
		entries: make(map[*entry]struct{}),
		used:    make(map[key]struct{}),
		lowest:  make(map[string]int),
		orphans: make(map[key]struct{}),
	}
	if got := time.Duration(granted.TTL) * time.Second; got != ttl {
		l.group.Go(s.revoke)
		return nil, &locks.Error{Op: "acquire", Kind: locks.ErrBadOption,
			Err: fmt.Errorf("TTL is %v, but this etcd grants %v, its minimum (it follows the election timeout); give %v or more", ttl, got, got)}
	}
	return s, nil
}
