package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// The request of a TryAcquire that gave up is in the server's buffer, behind or
// before the cleanup. Whichever runs first, the lock is free afterwards.
func TestRequestExecutedAfterItsCallerGaveUpHoldsNothing(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	client := newClient(t, srv.Addr())
	l := newLocker(t, client, &redislock.Options{Prefix: "p", TTL: time.Minute, RequestTimeout: 200 * time.Millisecond})
	bounded.Release(t, bounded.Acquire(t, l, "a"))

	srv.Pause(t)
	_, err := l.TryAcquire(bounded.Context(t), "a")
	if !errors.Is(err, locks.ErrUnreachable) {
		t.Fatalf("TryAcquire of a paused server: %v, want ErrUnreachable", err)
	}
	srv.Resume(t)
	gone := func() bool {
		found, err := client.Keys(t.Context(), "p:{a}:gone:*").Result()
		return err == nil && len(found) > 0
	}
	bounded.Eventually(t, "the attempt is withdrawn", gone)
	bounded.Eventually(t, "the lock is free", func() bool { return client.Exists(t.Context(), "p:{a}:lock").Val() == 0 })
	lease, err := l.TryAcquire(bounded.Context(t), "a")
	if err != nil {
		t.Fatalf("TryAcquire after the server went on: %v", err)
	}
	bounded.Release(t, lease)
}

func TestLateCopyOfAWithdrawnTakeIsRefused(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	holder := newLocker(t, client, &redislock.Options{Prefix: prefix, TTL: time.Minute})
	lease := bounded.Acquire(t, holder, "a")
	recorder := &recorder{Client: client}
	waiting := newLocker(t, recorder, rarePolls(prefix))
	ctx, cancel := context.WithCancel(t.Context())
	done := bounded.Acquiring(ctx, waiting, "a")
	bounded.Eventually(t, "it waits", func() bool { return waiters(t, client, key(prefix, "a")) == 1 })
	cancel()
	bounded.Receive(t, "the waiter", done)
	bounded.Eventually(t, "it is withdrawn", func() bool { return waiters(t, client, key(prefix, "a")) == 0 })
	bounded.Release(t, lease)
	for _, again := range recorder.takes {
		if got := again(t.Context()); len(got) != 2 || got[0] != "over" {
			t.Errorf("the late copy got %v, want over", got)
		}
	}
	if n := client.Exists(t.Context(), key(prefix, "a")+"lock").Val(); n != 0 {
		t.Error("the late copy took the lock")
	}
}

// The one that a release has woken goes away in the same moment.
func TestWithdrawnWaiterPassesItsWakeOn(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	k := key(prefix, "a")
	r := &recorder{Client: client}
	first, second := newLocker(t, client, rarePolls(prefix)), newLocker(t, r, rarePolls(prefix))
	lease := bounded.Acquire(t, first, "a")
	ctx, cancel := context.WithCancel(t.Context())
	one := bounded.Acquiring(ctx, first, "a")
	bounded.Eventually(t, "the first waits", func() bool { return waiters(t, client, k) == 1 })
	two := bounded.Acquiring(bounded.Context(t), second, "a")
	r.settled(t, 2)
	client.Del(t.Context(), k+"lock") // a release whose message the first got and the second did not
	cancel()
	bounded.Receive(t, "the first waiter", one)
	bounded.Release(t, bounded.Granted(t, "the second waiter", two))
	_ = lease.Release(t.Context())
}

func TestBlackHoleEndsTheLeaseBeforeTheServerFreesTheLock(t *testing.T) {
	t.Parallel()
	addr, prefix := servers.SharedRedis(t), space()
	client := newClient(t, addr)
	p := proxy.New(t, addr)
	ttl := time.Second
	l := newLocker(t, newClient(t, p.Addr()), &redislock.Options{Prefix: prefix, TTL: ttl})
	lease := bounded.Acquire(t, l, "a")
	successor := bounded.Acquiring(bounded.Context(t), newLocker(t, client, &redislock.Options{Prefix: prefix, TTL: ttl}), "a")

	p.BlackHole(t, proxy.Both)
	next := bounded.Granted(t, "the successor", successor)
	if lease.Context().Err() == nil {
		t.Error("the successor has the lock and the first holder was not told")
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	p.Heal(t)
	if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
		t.Errorf("Release of the lost lease: %v, want ErrLost", err)
	}
	if next.Context().Err() != nil {
		t.Errorf("the successor lost the lock: %v", context.Cause(next.Context()))
	}
	bounded.Release(t, next)
}

func TestAcquireOutlastsARestart(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, &servers.RedisOptions{AppendOnly: true})
	l := newLocker(t, newClient(t, srv.Addr()), &redislock.Options{TTL: time.Second})
	lease := bounded.Acquire(t, l, "a")
	before := lease.Token().Seq
	bounded.Release(t, lease)

	srv.Kill(t)
	done := bounded.Acquiring(bounded.Context(t), l, "a")
	if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("TryAcquire of a dead server: %v, want ErrUnreachable", err)
	}
	srv.Start(t)
	lease = bounded.Granted(t, "Acquire during the restart", done)
	if got := lease.Token().Seq; got <= before {
		t.Errorf("number %d after the restart, want more than %d", got, before)
	}
	bounded.Release(t, lease)
}

func TestLeaseSurvivesAShortOutage(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, &servers.RedisOptions{AppendOnly: true})
	client := newClient(t, srv.Addr())
	l := newLocker(t, client, &redislock.Options{Prefix: "p", TTL: 3 * time.Second})
	lease := bounded.Acquire(t, l, "a")
	srv.Restart(t)
	deadline := lease.Deadline()
	bounded.Eventually(t, "it is renewed", func() bool { return lease.Deadline().After(deadline) })
	bounded.Release(t, lease)
}

// Reads of a replica would report the lock as held; its refusal to write is an
// outage, which a failover ends.
func TestReadOnlyReplicaIsUnreachable(t *testing.T) {
	t.Parallel()
	primary := servers.StartRedis(t, nil)
	srv := servers.StartRedis(t, nil)
	node := newClient(t, srv.Addr())
	follow(t, node, primary.Addr())
	l := newLocker(t, node, &redislock.Options{TTL: time.Second})
	_, err := l.TryAcquire(bounded.Context(t), "a")
	if !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("TryAcquire on a replica: %v, want ErrUnreachable", err)
	}
	done := bounded.Acquiring(bounded.Context(t), l, "a")
	if err := node.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	bounded.Release(t, bounded.Granted(t, "Acquire when it has become the primary", done))
}

func TestReplicasConfirmTheGrant(t *testing.T) {
	t.Parallel()
	primary := servers.StartRedis(t, nil)
	replica := servers.StartRedis(t, nil)
	copied := newClient(t, replica.Addr())
	follow(t, copied, primary.Addr())
	client := newClient(t, primary.Addr())
	l := newLocker(t, client, &redislock.Options{Prefix: "p", TTL: time.Minute, WaitReplicas: 1, RequestTimeout: 2 * time.Second})
	lease := bounded.Acquire(t, l, "a")
	want := client.Get(t.Context(), "p:{a}:lock").Val()
	if got := copied.Get(t.Context(), "p:{a}:lock").Val(); got != want || got == "" {
		t.Errorf("the replica has %q at the time of the grant, want %q", got, want)
	}
	bounded.Release(t, lease)

	replica.Pause(t)
	_, err := l.TryAcquire(bounded.Context(t), "a")
	if !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("TryAcquire with a silent replica: %v, want ErrUnreachable", err)
	}
	bounded.Eventually(t, "the unconfirmed grant is gone", func() bool { return client.Exists(t.Context(), "p:{a}:lock").Val() == 0 })
	replica.Resume(t)
}

func follow(t *testing.T, node *redis.Client, primary string) {
	t.Helper()
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	bounded.Eventually(t, "the replica is in step", func() bool {
		return strings.Contains(node.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
}

// Out of memory a server refuses a script whose first write takes some.
func TestServerOutOfMemoryCanStillBeCleanedUp(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	client := newClient(t, srv.Addr())
	l := newLocker(t, client, rarePolls("p"))
	lease := bounded.Acquire(t, l, "a")
	ctx, cancel := context.WithCancel(t.Context())
	done := bounded.Acquiring(ctx, l, "a")
	bounded.Eventually(t, "it waits", func() bool { return waiters(t, client, key("p", "a")) == 1 })
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.TryAcquire(bounded.Context(t), "b"); !errors.Is(err, locks.ErrUnreachable) || !strings.Contains(fmt.Sprint(err), "OOM") {
		t.Errorf("TryAcquire: %v, want ErrUnreachable with OOM", err)
	}
	cancel()
	bounded.Receive(t, "the waiter", done)
	bounded.Eventually(t, "the waiter is gone", func() bool { return waiters(t, client, key("p", "a")) == 0 })
	bounded.Release(t, lease)
}

func TestCloseEndsHoldersAndWaiters(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, rarePolls(prefix))
	lease := bounded.Acquire(t, l, "a")
	done := bounded.Acquiring(bounded.Context(t), l, "a")
	bounded.Eventually(t, "it waits", func() bool { return waiters(t, client, key(prefix, "a")) == 1 })
	if err := l.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if r := bounded.Receive(t, "the waiter", done); !errors.Is(r.Err, locks.ErrClosed) {
		t.Errorf("the waiter: %v, want ErrClosed", r.Err)
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrReleased) {
		t.Errorf("the holder: %v, want ErrReleased", cause)
	}
	if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrClosed) {
		t.Errorf("TryAcquire after Close: %v, want ErrClosed", err)
	}
	if left := client.Exists(t.Context(), key(prefix, "a")+"lock", key(prefix, "a")+"queue").Val(); left != 0 {
		t.Errorf("%d keys are left", left)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the caller's client was closed: %v", err)
	}
}

func TestServerThatForgetsIsLossAtTheNextRenewal(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	l := newLocker(t, newClient(t, srv.Addr()), &redislock.Options{TTL: 3 * time.Second})
	lease := bounded.Acquire(t, l, "a")
	deadline := lease.Deadline()
	srv.Restart(t)
	select {
	case <-lease.Context().Done():
		if time.Now().After(deadline) {
			t.Error("the holder was told by its deadline only")
		}
	case <-time.After(bounded.Patience):
		t.Fatal("the holder was never told")
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	next := bounded.Acquire(t, l, "a")
	if got, before := next.Token().Seq, lease.Token().Seq; got <= before {
		t.Errorf("number %d, want more than %d", got, before)
	}
	bounded.Release(t, next)
}

func TestBrokenSubscriptionComesBack(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	client := newClient(t, srv.Addr())
	l := newLocker(t, client, rarePolls("p"))
	lease := bounded.Acquire(t, l, "a")
	done := bounded.Acquiring(bounded.Context(t), l, "a")
	subscribed := func() bool { return listening(t, client, "p") == 1 }
	bounded.Eventually(t, "it has subscribed", subscribed)
	if n := client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Val(); n != int64(1) {
		t.Fatalf("killed %v subscriptions, want 1", n)
	}
	bounded.Eventually(t, "it has subscribed again", subscribed)
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the waiter", done))
	// Nobody waits any more, so its connection is not kept.
	bounded.Eventually(t, "the idle subscription ends", func() bool { return listening(t, client, "p") == 0 })
}

func TestRenewalDoesNotTouchAnothersLock(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, &redislock.Options{Prefix: prefix, TTL: 3 * time.Second})
	lease := bounded.Acquire(t, l, "a")
	deadline := lease.Deadline()
	client.Set(t.Context(), key(prefix, "a")+"lock", "1 another", time.Hour)
	bounded.Ended(t, lease)
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrLost) || !time.Now().Before(deadline) {
		t.Errorf("cause %v at %v before the deadline, want ErrLost from the renewal", cause, time.Until(deadline))
	}
	_ = lease.Release(t.Context())
	if left := client.PTTL(t.Context(), key(prefix, "a")+"lock").Val(); left < 50*time.Minute {
		t.Errorf("another's lock runs out in %v, want what it was", left)
	}
}
