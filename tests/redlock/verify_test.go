package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

func TestOnlyThePresentGrantIsVerified(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	l, other := s.redlock(t, patient(prefix)), s.redlock(t, patient(prefix))
	past := bounded.Acquire(t, l, "a")
	bounded.Release(t, past)
	lease, beside := bounded.Acquire(t, l, "a"), bounded.Acquire(t, l, "b")
	token := lease.Token()
	for who, l := range map[string]*redislock.Redlock{"the holder's client": l, "another client": other} {
		if err := l.Verify(bounded.Context(t), "a", token); err != nil {
			t.Errorf("%s: %v, want nil", who, err)
		}
	}
	change := func(f func(*fence.Token)) fence.Token {
		changed := token
		f(&changed)
		return changed
	}
	for what, forged := range map[string]fence.Token{
		"the one before":     past.Token(),
		"a higher number":    change(func(t *fence.Token) { t.Seq++ }),
		"a lower number":     change(func(t *fence.Token) { t.Seq-- }),
		"another holder":     change(func(t *fence.Token) { t.Holder += "x" }),
		"no holder":          change(func(t *fence.Token) { t.Holder = "" }),
		"another lock's":     beside.Token(),
		"a bare number":      fence.Number(token.Seq),
		"another set's":      change(func(t *fence.Token) { t.Lineage = strings.Replace(t.Lineage, "/3:", "/5:", 1) }),
		"another technology": change(func(t *fence.Token) { t.Lineage = strings.Replace(t.Lineage, "redlock:", "redis:", 1) }),
	} {
		err := other.Verify(bounded.Context(t), "a", forged)
		if !errors.Is(err, fence.ErrUnverified) || strings.Contains(err.Error(), "reached") {
			t.Errorf("%s: %v, want ErrUnverified, and not that the servers are away", what, err)
		}
	}
	bounded.Release(t, lease)
	if err := other.Verify(bounded.Context(t), "a", token); !errors.Is(err, fence.ErrUnverified) {
		t.Errorf("after the release: %v, want ErrUnverified", err)
	}
}

// A client that has got the lock on one server only has no grant.
func TestGrantOfAMinorityIsNotVerified(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	l := s.redlock(t, patient(prefix))
	lease := bounded.Acquire(t, l, "a")
	token := lease.Token()
	for i := range 2 {
		s.clients[i].Del(t.Context(), k+"lock")
	}
	if err := l.Verify(bounded.Context(t), "a", token); !errors.Is(err, fence.ErrUnverified) {
		t.Errorf("Verify: %v, want ErrUnverified", err)
	}
	_ = lease.Release(t.Context())
}

func TestVerifierThatReachesNoMajoritySaysSo(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, true)
	o := patient(space())
	o.NodeTimeout = 3 * time.Second
	l := s.redlock(t, o)
	lease := bounded.Acquire(t, l, "a")
	s.servers[0].Kill(t)
	if err := l.Verify(bounded.Context(t), "a", lease.Token()); err != nil {
		t.Errorf("Verify with two of three servers: %v, want nil", err)
	}
	s.servers[1].Pause(t)
	err := l.Verify(bounded.Context(t), "a", lease.Token())
	if !errors.Is(err, fence.ErrUnverified) || !strings.Contains(err.Error(), "no majority of the servers could be reached") {
		t.Errorf("Verify with one of three servers: %v, want ErrUnverified and the reason", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Verify(ctx, "a", lease.Token()); !errors.Is(err, fence.ErrUnverified) || !errors.Is(err, context.Canceled) {
		t.Errorf("Verify with a cancelled context: %v, want ErrUnverified and context.Canceled", err)
	}
	s.servers[1].Resume(t)
	s.servers[0].Start(t)
	bounded.Release(t, lease)
	closeNow(t, l)
	if err := l.Verify(t.Context(), "a", lease.Token()); !errors.Is(err, fence.ErrUnverified) {
		t.Errorf("Verify after Close: %v, want ErrUnverified", err)
	}
}
