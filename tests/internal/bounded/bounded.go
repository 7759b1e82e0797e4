// Package bounded waits for what must happen in a test of an adapter, and fails
// the test if it does not: a hang would end the whole test binary, and say
// nothing of the test at fault. Its functions are for the test's own goroutine.
package bounded

import (
	"context"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// Patience is how long everything here waits. It is no bound on speed.
const Patience = 30 * time.Second

// Context ends with the test, at the latest after Patience.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Eventually asks until the answer is true.
func Eventually(t testing.TB, what string, ask func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(Patience); !ask(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, Patience)
		}
	}
}

// Receive returns the next element of ch, or the zero T if ch is closed.
func Receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(Patience):
		t.Fatalf("%s: not within %v", what, Patience)
		panic("unreachable")
	}
}

// Try is TryAcquire of a lock that is free.
func Try(t testing.TB, l locks.Locker, name string) *locks.Lease {
	t.Helper()
	lease, err := l.TryAcquire(Context(t), name)
	if err != nil {
		t.Fatalf("TryAcquire %q: %v", name, err)
	}
	return lease
}

// Acquire is Acquire of a lock that is free, or will be.
func Acquire(t testing.TB, l locks.Locker, name string) *locks.Lease {
	t.Helper()
	lease, err := l.Acquire(Context(t), name)
	if err != nil {
		t.Fatalf("Acquire %q: %v", name, err)
	}
	return lease
}

// Release gives a lock back that must still be held.
func Release(t testing.TB, lease *locks.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatalf("release %q: %v", lease.Name(), err)
	}
}

// Close closes a Locker, which must find nothing to complain of.
func Close(t testing.TB, l locks.Locker) {
	t.Helper()
	// The test's own context has ended when its clean-up runs.
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// Ended waits for the end of the lease and returns why it ended.
func Ended(t testing.TB, lease *locks.Lease) error {
	t.Helper()
	Receive(t, "the end of the lease", lease.Context().Done())
	return context.Cause(lease.Context())
}

// Result is what Acquire returned.
type Result struct {
	Lease *locks.Lease
	Err   error
}

// Acquiring calls Acquire in the background.
func Acquiring(ctx context.Context, l locks.Locker, name string) <-chan Result {
	done := make(chan Result, 1)
	go func() {
		lease, err := l.Acquire(ctx, name)
		done <- Result{lease, err}
	}()
	return done
}

// Queue is Acquiring, and returns when the waiter has its place.
func Queue(t testing.TB, l locks.Locker, name string, placed func() bool) <-chan Result {
	t.Helper()
	done := Acquiring(Context(t), l, name)
	Eventually(t, "the waiter's entry", placed)
	return done
}

// Granted waits for the lease that Acquiring is after.
func Granted(t testing.TB, who string, done <-chan Result) *locks.Lease {
	t.Helper()
	r := Receive(t, who, done)
	if r.Err != nil {
		t.Fatalf("%s: %v", who, r.Err)
	}
	return r.Lease
}
