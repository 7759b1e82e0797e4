package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// Each dead waiter is given its claim time once, and the live one looks once for
// each: no more is lost, and none of them is asked for again.
func TestDeadWaiterCostsOneClaimTime(t *testing.T) {
	t.Parallel()
	prefix := space()
	client, k := newClient(t, servers.SharedRedis(t)), key(prefix, "a")
	o := rarePolls(prefix)
	o.ClaimTime = 300 * time.Millisecond
	lease := bounded.Acquire(t, newLocker(t, client, o), "a")
	const deceased = 3
	for _, id := range []string{"one.1", "two.1", "three.1"} {
		dead(t, client, k, id)
	}
	r := &recorder{Client: client}
	done := bounded.Acquiring(bounded.Context(t), newLocker(t, r, o), "a")
	r.settled(t, 2)
	released := client.Time(t.Context()).Val()
	bounded.Release(t, lease)
	has(t, client, k, "reserved one.1")
	lease = bounded.Granted(t, "the live waiter", done)
	took := time.UnixMicro(int64(lease.Token().Seq)).Sub(released)
	t.Logf("%d dead waiters cost %v of the server's time", deceased, took)
	if took < deceased*o.ClaimTime {
		t.Errorf("%d dead waiters cost %v, want the claim time of %v for each", deceased, took, o.ClaimTime)
	}
	if looks := len(r.takes) - 2; looks != deceased {
		t.Errorf("the live waiter asked %d times, want once for each of the %d dead ones", looks, deceased)
	}
	if n := waiters(t, client, k); n != 0 {
		t.Errorf("%d waiters are left, want none: the dead have had their turn", n)
	}
	bounded.Release(t, lease)
}

// A waiter that the network cuts off looks like one whose process is stopped: its
// connections are open and nothing comes.
func TestStoppedWaiterLosesItsTurnAndKeepsItsPlace(t *testing.T) {
	t.Parallel()
	prefix, addr := space(), servers.SharedRedis(t)
	client, k := newClient(t, addr), key(prefix, "a")
	o := rarePolls(prefix)
	o.ClaimTime = 300 * time.Millisecond
	path := proxy.New(t, addr)
	r := &recorder{Client: newClient(t, path.Addr())}
	soon := *o
	soon.TTL, soon.PollInterval = 6*time.Second, 200*time.Millisecond
	lease := bounded.Acquire(t, newLocker(t, client, o), "a")
	stopped := bounded.Acquiring(bounded.Context(t), newLocker(t, r, &soon), "a")
	r.settled(t, 2)
	second := queued(t, client, newLocker(t, client, o), k)
	third := queued(t, client, newLocker(t, client, o), k)

	path.BlackHole(t, proxy.Both)
	bounded.Release(t, lease)
	lease = bounded.Granted(t, "the second waiter, after the claim time of the first", second)
	path.Heal(t)
	bounded.Eventually(t, "the first is a waiter again", func() bool { return waiters(t, client, k) == 2 })
	select {
	case r := <-third:
		t.Fatalf("the third waiter has the lock too, error %v", r.Err)
	default:
	}
	bounded.Release(t, lease)
	lease = bounded.Granted(t, "the first waiter, before the third", stopped)
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the third waiter", third))
}

// shut is a client whose takes wait until their callers give up, once it is shut.
type shut struct {
	*redis.Client
	takes chan struct{} // closed: takes wait
	asked chan struct{} // a take that waits
}

func (s *shut) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	select {
	case <-s.takes:
		if isTake(keys, args) {
			s.asked <- struct{}{}
			<-ctx.Done()
			return redis.NewCmdResult(nil, ctx.Err())
		}
	default:
	}
	return s.Client.EvalSha(ctx, sha, keys, args...)
}

func TestWaiterThatGivesUpItsTurnPassesItOnAtOnce(t *testing.T) {
	t.Parallel()
	prefix, addr := space(), servers.SharedRedis(t)
	client, k := newClient(t, addr), key(prefix, "a")
	lease := bounded.Acquire(t, newLocker(t, client, rarePolls(prefix)), "a")
	s := &shut{newClient(t, addr), make(chan struct{}), make(chan struct{}, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	first := bounded.Acquiring(ctx, newLocker(t, s, rarePolls(prefix)), "a")
	bounded.Eventually(t, "it waits and listens", func() bool {
		return waiters(t, client, k) == 1 && listening(t, client, prefix) == 1
	})
	r := &recorder{Client: client}
	second := bounded.Acquiring(bounded.Context(t), newLocker(t, r, rarePolls(prefix)), "a")
	r.settled(t, 2)
	close(s.takes)
	bounded.Release(t, lease)
	bounded.Receive(t, "the claim of the first", s.asked)
	cancel() // rarePolls: its claim time is a minute
	if got := bounded.Receive(t, "the first waiter", first); !errors.Is(got.Err, locks.ErrCancelled) {
		t.Errorf("the first waiter: %v, want ErrCancelled", got.Err)
	}
	bounded.Release(t, bounded.Granted(t, "the second waiter", second))
}

// deaf is a client whose subscriptions reach nobody.
type deaf struct {
	*redis.Client
	nowhere *redis.Client
}

func (d *deaf) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return d.nowhere.Subscribe(ctx, channels...)
}

// It polls within the claim time once it may be next, so that it is not
// overtaken by those that hear.
func TestWaiterThatHearsNothingKeepsItsTurn(t *testing.T) {
	t.Parallel()
	prefix, addr := space(), servers.SharedRedis(t)
	client, k := newClient(t, addr), key(prefix, "a")
	o := rarePolls(prefix)
	o.ClaimTime = 3 * time.Second
	lease := bounded.Acquire(t, newLocker(t, client, o), "a")
	d := &deaf{newClient(t, addr), newClient(t, "127.0.0.1:1")}
	first := queued(t, client, newLocker(t, d, o), k)
	second := queued(t, client, newLocker(t, client, o), k)
	bounded.Release(t, lease)
	lease = bounded.Granted(t, "the waiter that hears nothing", first)
	select {
	case r := <-second:
		t.Errorf("the second waiter has the lock too, error %v", r.Err)
	default:
	}
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Granted(t, "the second waiter", second))
}

// Nobody releases, so nobody sends a message.
func TestExpiredHolderIsFollowedByTheFirstWaiterOnly(t *testing.T) {
	t.Parallel()
	prefix := space()
	client, k := newClient(t, servers.SharedRedis(t)), key(prefix, "a")
	const n, lookouts = 20, 8
	o := rarePolls(prefix)
	o.ClaimTime = 300 * time.Millisecond
	end := client.Time(t.Context()).Val().Add(5 * time.Second)
	client.Set(t.Context(), k+"lock", "1 crashed", 0)
	client.PExpireAt(t.Context(), k+"lock", end)
	r := &recorder{Client: client}
	var line []<-chan bounded.Result
	for i := range n {
		line = append(line, bounded.Acquiring(bounded.Context(t), newLocker(t, r, o), "a"))
		r.settled(t, 2*(i+1))
	}
	if client.Exists(t.Context(), k+"lock").Val() != 1 {
		t.Fatal("the lock ran out before all waited")
	}
	lease := bounded.Granted(t, "the first waiter", line[0])
	// They look a tenth of the claim time apart.
	bounded.Eventually(t, "all that look have looked", func() bool {
		return client.Time(t.Context()).Val().After(end.Add(n * o.ClaimTime / 10))
	})
	r.mu.Lock()
	looked := len(r.takes) - 2*n
	r.mu.Unlock()
	t.Logf("%d of %d waiters asked when the holder's lease ran out", looked, n)
	if looked > lookouts {
		t.Errorf("%d of %d waiters asked when the holder's lease ran out, want at most %d", looked, n, lookouts)
	}
	bounded.Release(t, lease)
}

// The first that polls takes the lock; the others have their places again.
func TestFlushedQueueFormsAgainInOrder(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	client, k := newClient(t, srv.Addr()), key("p", "a")
	waiter := func(ttl, poll time.Duration) <-chan bounded.Result {
		r := &recorder{Client: client}
		l := newLocker(t, r, &redislock.Options{Prefix: "p", TTL: ttl, PollInterval: poll, ClaimTime: ttl})
		done := bounded.Acquiring(bounded.Context(t), l, "a")
		r.settled(t, 2)
		return done
	}
	lease := bounded.Acquire(t, newLocker(t, client, rarePolls("p")), "a")
	first := waiter(time.Minute, 100*time.Millisecond)
	// The third polls before the second, and waits behind it all the same.
	second := waiter(4*time.Second, 4*time.Second)
	third := waiter(2*time.Second, time.Second)
	before := lease.Token().Seq
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	next := bounded.Granted(t, "the first waiter", first)
	if next.Token().Seq <= before {
		t.Errorf("number %d after the flush, want more than %d", next.Token().Seq, before)
	}
	if err := lease.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
		t.Errorf("Release of the lock that the server forgot: %v, want ErrLost", err)
	}
	bounded.Eventually(t, "the others wait again", func() bool { return waiters(t, client, k) == 2 })
	bounded.Release(t, next)
	bounded.Release(t, bounded.Granted(t, "the second waiter", second))
	bounded.Release(t, bounded.Granted(t, "the third waiter", third))
}
