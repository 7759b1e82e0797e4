package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestLossInABlackHoleIsSignalledBeforeTheLockIsFree(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.options())
	lease := bounded.Try(t, l, "a")
	key := s.holder(t, "a").key
	ctx, cancel := context.WithTimeout(t.Context(), bounded.Patience)
	defer cancel()
	watch := s.direct.Watch(ctx, key, clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
	<-watch
	l.Network.BlackHole(t, proxy.Both)
	if got := <-watch; got.Err() != nil || len(got.Events) != 1 {
		t.Fatalf("watch: %+v, want the end of the key", got)
	}
	select {
	case <-lease.Context().Done():
	default:
		t.Error("etcd has freed the lock and the lease's context has not ended")
	}
	if err := bounded.Ended(t, lease); !errors.Is(err, locks.ErrLost) {
		t.Errorf("the lease ended with %v, want ErrLost", err)
	}
}

func TestHolderAndWaiterOutliveARestartOfTheServer(t *testing.T) {
	t.Parallel()
	srv := servers.StartEtcd(t, nil)
	s := newSite(t, srv.Addr())
	opts := s.options()
	opts.TTL = 10 * time.Second
	held := bounded.Try(t, s.dial(t, s.addr, opts), "a")
	waiter := s.wait(t, s.dial(t, s.addr, opts), "a", 2)
	srv.Restart(t)
	before := held.Deadline()
	bounded.Eventually(t, "renewal after the restart", func() bool { return held.Deadline().After(before) })
	select {
	case r := <-waiter:
		t.Fatalf("the waiter returned %v, %v while the lock was held", r.Lease, r.Err)
	default:
	}
	bounded.Release(t, held)
	next := bounded.Granted(t, "the waiter", waiter)
	if next.Token().Seq <= held.Token().Seq || next.Token().Lineage != held.Token().Lineage {
		t.Errorf("token %v after %v", next.Token(), held.Token())
	}
}

// A waiter that etcd has forgotten takes a new place, also if a client of the
// same process holds the lock.
func TestWaiterQueuesAgainWhen(t *testing.T) {
	t.Parallel()
	for what, forget := range map[string]func(t *testing.T, s *site, l *counted, own entry){
		"its key was deleted": func(t *testing.T, s *site, _ *counted, own entry) { s.delete(t, own.key) },
		"its key was put again by another": func(t *testing.T, s *site, _ *counted, own entry) {
			if _, err := s.direct.Put(t.Context(), own.key, "x"); err != nil {
				t.Fatal(err)
			}
		},
		"its lease was revoked": func(t *testing.T, s *site, _ *counted, own entry) { s.revoke(t, own) },
		"its lease ran out in a black hole": func(t *testing.T, s *site, l *counted, own entry) {
			l.Network.BlackHole(t, proxy.Both)
			bounded.Eventually(t, "the end of its lease", func() bool { return len(s.entries(t, "a")) == 1 })
			l.Network.Heal(t)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			held := bounded.Try(t, s.dial(t, s.addr, s.long()), "a")
			b := s.counted(t, s.options())
			waiter := s.waits(t, b, "a", 2)
			own := s.entries(t, "a")[1]
			forget(t, s, b, own)
			bounded.Eventually(t, "the new entry", func() bool {
				all := s.entries(t, "a")
				return len(all) == 2 && all[1].rev != own.rev
			})
			bounded.Release(t, held)
			lease := bounded.Granted(t, "the waiter", waiter)
			if tok, e := lease.Token(), s.holder(t, "a"); tok.Seq != uint64(e.rev) || e.holder != tok.Holder {
				t.Errorf("token %v, but %+v holds the lock", tok, e)
			}
			bounded.Release(t, lease)
		})
	}
}

func TestATakeWhoseReplyWasLostIsFoundAndNotMadeAgain(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.long())
	bounded.Try(t, l, "other")
	ctx, cancel := context.WithTimeout(t.Context(), bounded.Patience)
	defer cancel()
	watch := s.direct.Watch(ctx, s.queue("a"), clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-watch
	lost := l.Counter.DropReply(pathTxn)
	lease := bounded.Try(t, l, "a")
	bounded.Receive(t, "the lost reply", lost)
	if got, want := s.holder(t, "a").lease, s.holder(t, "other").lease; got != want {
		t.Errorf("the grant hangs on lease %x, want %x: all that was sent is accounted for", got, want)
	}
	bounded.Release(t, lease)
	var events []string
	for len(events) < 2 {
		r := <-watch
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		for _, e := range r.Events {
			events = append(events, e.Type.String())
			if e.IsCreate() && e.Kv.CreateRevision != int64(lease.Token().Seq) {
				t.Errorf("a key was created with number %d, the grant has %d", e.Kv.CreateRevision, lease.Token().Seq)
			}
		}
	}
	if want := []string{"PUT", "DELETE"}; !slices.Equal(events, want) {
		t.Errorf("etcd saw %v, want %v", events, want)
	}
}

func TestAReleaseWhoseReplyWasLostIsNotALoss(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.counted(t, s.long())
	lease := bounded.Try(t, l, "a")
	lost := l.Counter.DropReply(pathTxn)
	bounded.Release(t, lease)
	bounded.Receive(t, "the lost reply", lost)
	bounded.Release(t, bounded.Try(t, l, "a"))
}

func TestATakeThatArrivesAfterItsCallerGaveUpLeavesNothing(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.long()
	opts.RequestTimeout = 200 * time.Millisecond
	l := s.counted(t, opts)
	bounded.Release(t, bounded.Try(t, l, "first use"))

	l.Network.BlackHole(t, proxy.Upstream)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.TryAcquire(ctx, "a"); !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want an error over ErrCancelled and context.DeadlineExceeded", err)
	}
	if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want an error over ErrUnreachable and not over the end of a context of the caller's", err)
	}
	l.Network.Heal(t)

	other := s.dial(t, s.addr, s.long())
	ctx, cancel = context.WithTimeout(t.Context(), bounded.Patience)
	defer cancel()
	lease, err := other.Acquire(ctx, "a")
	if err != nil {
		t.Fatalf("the next client: %v; entries: %+v", err, s.entries(t, "a"))
	}
	bounded.Release(t, lease)
	bounded.Eventually(t, "nothing is left", func() bool { return len(s.entries(t, "a")) == 0 })
}

func TestALeaseWithAKeyThatCouldNotBeRemovedTakesNoNewGrants(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.long()
	opts.RequestTimeout = 200 * time.Millisecond
	l := s.counted(t, opts)
	a, b := bounded.Try(t, l, "a"), bounded.Try(t, l, "b")
	old := s.holder(t, "b").lease

	l.Network.BlackHole(t, proxy.Both)
	if err := a.Release(t.Context()); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("release in a black hole: %v, want ErrUnreachable", err)
	}
	l.Network.Heal(t)
	bounded.Eventually(t, "the key is removed in the background", func() bool { return len(s.entries(t, "a")) == 0 })
	c := bounded.Try(t, l, "c")
	if s.holder(t, "c").lease == old {
		t.Error("the new grant hangs on the old lease")
	}
	if err := b.Context().Err(); err != nil {
		t.Errorf("the old lease's other grant: %v", context.Cause(b.Context()))
	}
	bounded.Release(t, b)
	bounded.Eventually(t, "the old lease is revoked", func() bool {
		ttl, err := s.direct.TimeToLive(t.Context(), old)
		return err == nil && ttl.TTL == -1
	})
	if err := c.Context().Err(); err != nil {
		t.Errorf("the new lease's grant: %v", context.Cause(c.Context()))
	}
}

func TestCompactionDoesNotDisturbAWaiter(t *testing.T) {
	t.Parallel()
	srv := servers.StartEtcd(t, nil)
	s := newSite(t, srv.Addr())
	held := bounded.Try(t, s.dial(t, s.addr, s.long()), "a")
	waiter := s.wait(t, s.dial(t, s.addr, s.long()), "a", 2)
	resp, err := s.direct.Put(t.Context(), "x", "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.direct.Compact(t.Context(), resp.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	srv.Restart(t) // the watch is made again, on compacted history
	bounded.Release(t, held)
	bounded.Granted(t, "the waiter", waiter)
}

func TestTheErrorSaysWhyNobodyAnswers(t *testing.T) {
	t.Parallel()
	nobody := fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t))
	opts := &etcdlock.Options{TTL: time.Second}
	_, err := etcdlock.Dial("etcd://app:secret@"+nobody, opts)
	refusedBecause(t, err, "dial tcp "+nobody, "secret")
	l, err := etcdlock.Dial("etcd://"+nobody, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer bounded.Close(t, l)
	_, err = l.Acquire(bounded.Context(t), "a")
	refusedBecause(t, err, "dial tcp "+nobody, "secret")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = l.Acquire(ctx, "a")
	refusedBecause(t, err, "dial tcp "+nobody, "secret")
	if !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want an error over ErrCancelled and context.DeadlineExceeded as well", err)
	}
}

const holderEnv = "FENCEDKV_TEST_HOLDER"

// hold is another process: it takes the lock, says so and keeps it.
func hold(addr string) {
	addr, prefix, _ := strings.Cut(addr, " ")
	l, err := etcdlock.Dial("etcd://"+addr, &etcdlock.Options{Prefix: prefix, TTL: time.Second})
	if err == nil {
		_, err = l.Acquire(context.Background(), "a")
	}
	fmt.Println("held", err)
	select {}
}

func TestAKilledHoldersLockIsFreedAfterItsTime(t *testing.T) {
	t.Parallel()
	s := shared(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+s.addr+" "+s.prefix)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	var said, reason string
	if _, err := fmt.Fscan(out, &said, &reason); err != nil || reason != "<nil>" {
		t.Fatalf("the holder: %q %q, %v", said, reason, err)
	}
	dead := s.holder(t, "a")
	waiter := s.wait(t, s.dial(t, s.addr, s.options()), "a", 2)
	cmd.Process.Kill()
	if next := bounded.Granted(t, "the waiter", waiter); next.Token().Seq <= uint64(dead.rev) {
		t.Errorf("token %v after the killed holder's %d", next.Token(), dead.rev)
	}
}

// The shared lease goes on for the other grant, so the key must be removed by
// name.
func TestAGrantThatNobodyRenewsIsFreedWhileItsSharedLeaseGoesOn(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.options()
	opts.TTL = 3 * time.Second
	l := s.dial(t, s.addr, opts)
	other := bounded.Try(t, l, "other")
	ctx, cancel := context.WithCancel(t.Context())
	stuck := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- locks.Do(ctx, l, "a", func(context.Context, *locks.Lease) error {
			cancel()
			<-stuck
			return nil
		})
	}()
	<-ctx.Done()
	bounded.Eventually(t, "the end of the key", func() bool { return len(s.entries(t, "a")) == 0 })
	if err := other.Context().Err(); err != nil {
		t.Errorf("the other grant: %v", context.Cause(other.Context()))
	}
	close(stuck)
	if err := bounded.Receive(t, "the end of Do", done); !errors.Is(err, locks.ErrLost) {
		t.Errorf("Do: %v, want ErrLost", err)
	}
}
