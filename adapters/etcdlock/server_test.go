package etcdlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
)

func TestServersThatAreTooOldAreRefused(t *testing.T) {
	for _, version := range []string{"3.5.12", "3.4.23", "2.3.8", "3.5.13-rc.0", "unknown", ""} {
		_, err := (&server{version: version}).locker(t, nil).TryAcquire(soon(t), "a")
		if !errors.Is(err, locks.ErrUnsupported) || !strings.Contains(err.Error(), version) || !strings.Contains(err.Error(), etcdlock.MinVersion) {
			t.Errorf("etcd %q: got %v, want an error over ErrUnsupported that names it and %s", version, err, etcdlock.MinVersion)
		}
	}
	for _, version := range []string{"3.5.13", "3.5.21", "3.6.0", "3.7.3", "4.0.0"} {
		lease, err := (&server{version: version}).locker(t, nil).TryAcquire(soon(t), "a")
		if err != nil {
			t.Errorf("etcd %q: %v", version, err)
			continue
		}
		if got, want := lease.Token().String(), "42@etcd:7:fencedkv/locks/a~"; !strings.HasPrefix(got, want) {
			t.Errorf("etcd %q: token %s, want %s and a holder", version, got, want)
		}
	}
}

func TestALongerLeaseThanAskedForIsRefusedAndGivenBack(t *testing.T) {
	s := &server{version: "3.7.3", extra: 2}
	l := s.locker(t, &etcdlock.Options{TTL: 3 * time.Second})
	_, err := l.TryAcquire(soon(t), "a")
	if !errors.Is(err, locks.ErrBadOption) || !strings.Contains(err.Error(), "3s") || !strings.Contains(err.Error(), "5s") {
		t.Errorf("got %v, want an error over ErrBadOption that names 3s and 5s", err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.revoked, []int64{1}) || len(s.created) != 0 {
		t.Errorf("leases revoked: %v, want 1; keys created: %q, want none", s.revoked, s.created)
	}
}

// A request has a time of its own. When that ends the caller's context has not
// ended, and the error must not say so.
func TestATimeoutOfARequestIsNotTheCallers(t *testing.T) {
	s := &server{version: "3.7.3", hang: make(chan struct{})}
	l := s.locker(t, &etcdlock.Options{RequestTimeout: 50 * time.Millisecond})
	_, err := l.Acquire(soon(t), "a")
	if !errors.Is(err, locks.ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("got %v, want an error over ErrUnreachable, not context.DeadlineExceeded, that names 50ms", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the night is over")
	cancel(why)
	if _, err := l.Acquire(ctx, "a"); !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("got %v, want an error over ErrCancelled, context.Canceled and the cause", err)
	}
}

// A server that answers at once that it has no leader is not asked without a
// pause, and the lease ends at its own deadline.
func TestRefusedRenewalsArePaced(t *testing.T) {
	s := &server{version: "3.7.3"}
	l := s.locker(t, &etcdlock.Options{TTL: time.Second})
	lease, err := l.TryAcquire(soon(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-lease.Context().Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the lease has not ended")
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrLost) {
		t.Errorf("the lease ended with %v, want ErrLost", cause)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.renewals; n < 2 || n > 20 {
		t.Errorf("%d renewals were sent in one lease time, want a few", n)
	}
}

// The server counts from when the request arrived, so the holder must count
// from before it.
func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	s := &server{version: "3.7.3", lead: true}
	lease, err := s.locker(t, &etcdlock.Options{TTL: ttl}).TryAcquire(soon(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	deadline := lease.Deadline()
	for n := range 3 {
		s.mu.Lock()
		latest := s.counted.Add(locks.Validity(ttl))
		s.mu.Unlock()
		if deadline.After(latest) {
			t.Errorf("after %d renewals the deadline is %v too late", n, deadline.Sub(latest))
		}
		for tick := time.Tick(time.Millisecond); lease.Deadline().Equal(deadline) && lease.Context().Err() == nil; {
			<-tick
		}
		deadline = lease.Deadline()
	}
	if lease.Context().Err() != nil {
		t.Errorf("the lease was lost: %v", context.Cause(lease.Context()))
	}
}

// A grant on an old shared lease has only what is left of its time.
func TestNoGrantOnALeaseWhoseTimeIsRunningOut(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second
	s := &server{version: "3.7.3"}
	l := s.locker(t, &etcdlock.Options{TTL: ttl, RequestTimeout: 100 * time.Millisecond})
	lease, err := l.TryAcquire(soon(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Until(lease.Deadline().Add(-locks.Validity(ttl) / 2)))
	if b, err := l.TryAcquire(soon(t), "b"); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("got %v, %v, want ErrUnreachable, because the lease cannot be renewed first", b, err)
	}
}

// A copy of the request may still be on its way, and would create the key after
// it was released. So the attempt is made again with another key, on another
// lease, and the first lease is revoked.
func TestATakeWithACopyUnderWayIsMadeAgainOnAnotherLease(t *testing.T) {
	t.Parallel()
	s := &server{version: "3.7.3", lead: true}
	s.lose.Store(1)
	l := s.locker(t, nil)
	lease, err := l.TryAcquire(soon(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.created) != 2 || s.created[0] == s.created[1] || s.holders[1] != lease.Token().Holder {
		t.Fatalf("keys created: %q, holders %q, want two, the last one with the holder %q", s.created, s.holders, lease.Token().Holder)
	}
	for _, key := range s.created {
		if !slices.Contains(s.deleted, key) {
			t.Errorf("%q was not deleted", key)
		}
	}
	if slices.Sort(s.revoked); !slices.Equal(s.revoked, []int64{1, 2}) {
		t.Errorf("leases revoked: %v, want 1 and 2", s.revoked)
	}
}

// While the retired lease lives on for another grant, the late copy could create
// the key at any time: each renewal removes it.
func TestAKeyThatMayComeLateIsRemovedWithEachRenewal(t *testing.T) {
	t.Parallel()
	s := &server{version: "3.7.3", lead: true}
	l := s.locker(t, &etcdlock.Options{TTL: 3 * time.Second})
	if _, err := l.TryAcquire(soon(t), "stays"); err != nil {
		t.Fatal(err)
	}
	s.lose.Store(1)
	if _, err := l.TryAcquire(soon(t), "a"); err != nil {
		t.Fatal(err)
	}
	s.removedAgainAndAgain(t, 1)
}

// So is a key that a release could not remove in all its time.
func TestAKeyThatCouldNotBeReleasedIsRemovedWithEachRenewal(t *testing.T) {
	t.Parallel()
	s := &server{version: "3.7.3", lead: true}
	l := s.locker(t, &etcdlock.Options{TTL: time.Second, RequestTimeout: 100 * time.Millisecond})
	if _, err := l.TryAcquire(soon(t), "stays"); err != nil {
		t.Fatal(err)
	}
	lease, err := l.TryAcquire(soon(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	s.keep.Store(true)
	if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("release: got %v, want ErrUnreachable", err)
	}
	s.removedAgainAndAgain(t, 1)
	s.keep.Store(false)
}

// removedAgainAndAgain waits until the n-th key that was created has been
// deleted three times.
func (s *server) removedAgainAndAgain(t *testing.T, n int) {
	t.Helper()
	removals := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		count := 0
		for _, key := range s.deleted {
			if key == s.created[n] {
				count++
			}
		}
		return count
	}
	end := time.After(30 * time.Second)
	for tick := time.Tick(time.Millisecond); removals() < 3; {
		select {
		case <-tick:
		case <-end:
			t.Fatalf("the key was removed %d times, want again with each renewal", removals())
		}
	}
}
