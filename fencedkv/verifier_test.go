package fencedkv_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// testVerifier confirms what the test has granted and counts what it is asked.
type testVerifier struct {
	lineage string                      // of its tokens; empty for all
	answer  func(context.Context) error // of what is not granted; nil is fence.ErrNotGranted
	before  func(context.Context)       // runs before each answer; may be nil

	mu      sync.Mutex
	granted map[string]fence.Token
	asked   []fence.Token
}

func (v *testVerifier) grant(resource string, t fence.Token) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.granted == nil {
		v.granted = make(map[string]fence.Token)
	}
	v.granted[resource] = t
}

func (v *testVerifier) Verify(ctx context.Context, resource string, t fence.Token) error {
	if v.lineage != "" && t.Lineage != v.lineage {
		return &fence.UnverifiedError{Resource: resource, Offered: t, Reason: fence.ErrNoVerifier}
	}
	v.mu.Lock()
	v.asked = append(v.asked, t)
	v.mu.Unlock()
	if v.before != nil {
		v.before(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	v.mu.Lock()
	current := v.granted[resource]
	v.mu.Unlock()
	switch {
	case current == t:
		return nil
	case v.answer != nil:
		return v.answer(ctx)
	}
	return &fence.UnverifiedError{Resource: resource, Offered: t, Reason: fence.ErrNotGranted, Current: current}
}

// questions is how often it was asked since the last call.
func (v *testVerifier) questions() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.asked)
	v.asked = nil
	return n
}

// openVerified opens a store with verifiers, which is closed when the test ends.
func openVerified(t *testing.T, vs ...fence.Verifier) *fencedkv.Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "store.db"), &fencedkv.Options{Verifiers: vs})
}

// wantUnverified wants a refusal for that reason, with the token and the mark.
func wantUnverified(t *testing.T, err, reason error, offered, mark fence.Token) *fence.UnverifiedError {
	t.Helper()
	refusal, ok := errors.AsType[*fence.RejectedError](err)
	if !ok || refusal.Offered != offered || refusal.Mark.Token != mark {
		t.Fatalf("got error %v, want a *fence.RejectedError of %v with the mark %v", err, offered, mark)
	}
	wantIs(t, err, fence.ErrUnverified)
	wantIs(t, err, reason)
	u, ok := errors.AsType[*fence.UnverifiedError](err)
	if !ok || u.Offered != offered || !errors.Is(u.Reason, reason) {
		t.Fatalf("got error %v, want a *fence.UnverifiedError of %v with the reason %v", err, offered, reason)
	}
	return u
}

var _ fence.Verifier = (*testVerifier)(nil)
