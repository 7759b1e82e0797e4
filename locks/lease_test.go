package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

var errAway = errors.New("service away")

func grant(validity time.Duration) locks.Grant {
	return locks.Grant{
		Name:     "jobs",
		Token:    fence.Token{Seq: 7, Lineage: "test:jobs", Holder: "h"},
		Sent:     time.Now(),
		Validity: validity,
		Release:  func(context.Context) error { return nil },
	}
}

// wantEnd fails unless the lease's context has ended with a cause over want.
func wantEnd(t *testing.T, lease *locks.Lease, want error) {
	t.Helper()
	if err := lease.Context().Err(); !errors.Is(err, context.Canceled) {
		t.Fatalf("Context().Err() = %v, want context.Canceled", err)
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, want) {
		t.Fatalf("the lease ended with %v, want an error over %v", cause, want)
	}
}

// waitEnd waits for the end of the lease, but not for ever.
func waitEnd(t *testing.T, lease *locks.Lease) {
	t.Helper()
	select {
	case <-lease.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("the lease has not ended after a minute")
	}
}

func wantLive(t *testing.T, lease *locks.Lease) {
	t.Helper()
	if err := lease.Context().Err(); err != nil {
		t.Fatalf("the lease has ended: %v", context.Cause(lease.Context()))
	}
}

func TestLeaseEndsAtItsDeadlineCountedFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(time.Second)
		time.Sleep(300 * time.Millisecond) // the reply took that long
		lease, _ := locks.NewLease(t.Context(), g)
		if got, want := lease.Deadline(), g.Sent.Add(time.Second); !got.Equal(want) {
			t.Errorf("Deadline() = %v, want %v, counted from before the request", got, want)
		}
		time.Sleep(699 * time.Millisecond)
		wantLive(t, lease)
		waitEnd(t, lease)
		if got := time.Since(g.Sent); got != time.Second {
			t.Errorf("Done after %v, want 1s", got)
		}
		wantEnd(t, lease, locks.ErrLost)
		if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
			t.Errorf("Release of a lost lease = %v, want ErrLost", err)
		}
	})
}

// TestErrLooksAtTheClockWhenCalled: the process was stopped, so no timer has
// fired yet; Err must know all the same.
func TestErrLooksAtTheClockWhenCalled(t *testing.T) {
	g := grant(time.Hour)
	g.Sent = time.Now().Add(-time.Hour)
	lease, _ := locks.NewLease(t.Context(), g)
	wantEnd(t, lease, locks.ErrLost)
}

// ago returns a time since which the two clocks went that far.
func ago(t *testing.T, monotonic, wall time.Duration) time.Time {
	t.Helper()
	at := time.Now().Add(-monotonic)
	// A Time with a monotonic reading keeps its wall seconds from bit 30 of its
	// first word on, and no API sets the two apart.
	*(*uint64)(unsafe.Pointer(&at)) -= uint64((wall-monotonic)/time.Second) << 30
	gotMono, gotWall := time.Since(at), time.Now().Round(0).Sub(at.Round(0))
	if (gotMono-monotonic).Abs() > time.Minute || (gotWall-wall).Abs() > time.Minute {
		t.Fatalf("the clocks say %v and %v: this Go keeps its times in another way", gotMono, gotWall)
	}
	return at
}

func TestWallClockCountsWhenTheMonotonicOneStoodStill(t *testing.T) {
	g := grant(time.Hour)
	g.Sent = ago(t, 0, 2*time.Hour)
	lease, _ := locks.NewLease(t.Context(), g)
	wantEnd(t, lease, locks.ErrLost)
}

func TestMonotonicClockCountsWhenTheWallClockWasSetBack(t *testing.T) {
	g := grant(time.Hour)
	g.Sent = ago(t, 2*time.Hour, 0)
	lease, _ := locks.NewLease(t.Context(), g)
	wantEnd(t, lease, locks.ErrLost)
}

// TestNothingRevivesALeaseWhoseTimeIsOver: the process was stopped, and what it
// does first is to renew or to release. Often no goroutine has run yet.
func TestNothingRevivesALeaseWhoseTimeIsOver(t *testing.T) {
	for range 100 {
		g := grant(time.Hour)
		g.Sent = g.Sent.Add(-time.Hour)
		_, control := locks.NewLease(t.Context(), g)
		if control.Renewed(time.Now()) {
			t.Fatal("the lease was renewed after its deadline")
		}
		lease, _ := locks.NewLease(t.Context(), g)
		if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
			t.Fatalf("Release = %v, want ErrLost", err)
		}
	}
}

func TestLossNamesTheLockAndSaysEachThingOnce(t *testing.T) {
	for _, name := range []string{"jobs", ""} {
		lease, control := locks.NewLease(t.Context(), grant(time.Hour))
		told := &locks.Error{Op: "renew", Name: name, Kind: locks.ErrLost, Err: errAway}
		control.Lose(told)
		cause := context.Cause(lease.Context())
		if !errors.Is(cause, told) || !strings.Contains(cause.Error(), `"jobs"`) {
			t.Errorf("the cause is %v, want %v and the lock's name", cause, told)
		}
		if n := strings.Count(cause.Error(), locks.ErrLost.Error()); name != "" && n != 1 {
			t.Errorf("the text %q says %d times that the lease is lost", cause, n)
		}
	}
	lease, control := locks.NewLease(t.Context(), grant(time.Hour))
	control.Lose(&locks.Error{Op: "renew", Name: "jobs", Kind: locks.ErrUnreachable})
	wantEnd(t, lease, locks.ErrLost)
}

func TestLostLeaseIsTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, control := locks.NewLease(t.Context(), grant(time.Second))
		control.Lose(errAway)
		wantEnd(t, lease, locks.ErrLost)
		if control.Renewed(time.Now()) {
			t.Error("a lost lease was renewed")
		}
		if control.Wants() {
			t.Error("a lost lease wants to be renewed")
		}
		_ = lease.Release(t.Context())
		wantEnd(t, lease, locks.ErrLost)
	})
}

func TestContextCarriesTokenAndValuesButNotTheCallersEnd(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "trace"))
	lease, _ := locks.NewLease(ctx, grant(time.Hour))
	cancel()
	wantLive(t, lease)
	if got, _ := fence.FromContext(lease.Context()); got != lease.Token() {
		t.Errorf("the context carries %v, want %v", got, lease.Token())
	}
	if lease.Context().Value(key{}) != "trace" {
		t.Error("a value of the caller's context is gone")
	}
	child, stop := context.WithCancel(lease.Context())
	defer stop()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	<-child.Done()
	if cause := context.Cause(child); !errors.Is(cause, locks.ErrReleased) {
		t.Errorf("a derived context ended with %v, want ErrReleased", cause)
	}
}
