package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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

const maxNumber = 1<<53 - 1

func TestTokensRiseAcrossReleaseAndClients(t *testing.T) {
	t.Parallel()
	addr, prefix := servers.SharedRedis(t), space()
	var before uint64
	for i := range 6 {
		l := newLocker(t, newClient(t, addr), &redislock.Options{Prefix: prefix})
		lease := bounded.Acquire(t, l, "jobs")
		if got := lease.Token().Seq; got <= before {
			t.Fatalf("grant %d: number %d, want more than %d", i, got, before)
		}
		before = lease.Token().Seq
		if got, want := lease.Token().Lineage, "redis:"+strings.ReplaceAll(prefix, ":", "%3A")+":jobs"; got != want {
			t.Errorf("lineage %q, want %q", got, want)
		}
		bounded.Release(t, lease)
	}
}

func TestLostCounterIsFollowedByAHigherNumber(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	client := newClient(t, srv.Addr())
	l := newLocker(t, client, &redislock.Options{Prefix: "p"})
	losses := map[string]func(){
		"FLUSHALL": func() { client.FlushAll(t.Context()) },
		"DEL last": func() { client.Del(t.Context(), key("p", "a")+"last") },
		"killed and empty": func() {
			srv.Restart(t)
			bounded.Eventually(t, "ping", func() bool { return client.Ping(t.Context()).Err() == nil })
		},
	}
	for what, lose := range losses {
		lease := bounded.Acquire(t, l, "a")
		before := lease.Token().Seq
		bounded.Release(t, lease)
		lose()
		if n := client.Exists(t.Context(), key("p", "a")+"last").Val(); n != 0 {
			t.Fatalf("%s: the counter is still there", what)
		}
		lease = bounded.Acquire(t, l, "a")
		if got := lease.Token().Seq; got <= before {
			t.Errorf("after %s: number %d, want more than %d", what, got, before)
		}
		bounded.Release(t, lease)
	}
}

func TestNumbersAreExactAndAboveTheLast(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, &redislock.Options{Prefix: prefix})
	// All ahead of the clock, so that the last number counts.
	for _, last := range []uint64{1<<52 + 1, 8_999_999_999_999_999, maxNumber - 2, maxNumber - 1} {
		k := key(prefix, "a")
		client.Set(t.Context(), k+"last", fmt.Sprintf("%d somebody", last), 0)
		lease := bounded.Acquire(t, l, "a")
		if got, want := lease.Token().Seq, last+1; got != want {
			t.Errorf("after %d: number %d, want %d", last, got, want)
		}
		if got, want := client.Get(t.Context(), k+"lock").Val(), fmt.Sprintf("%d %s", last+1, lease.Token().Holder); got != want {
			t.Errorf("after %d: the server has %q, want %q", last, got, want)
		}
		bounded.Release(t, lease)
	}
	// All behind the clock; from 1e14 Lua's tostring would lose digits.
	for _, last := range []string{"1", "100000000000001", "999999999999999"} {
		client.Set(t.Context(), key(prefix, "a")+"last", last+" somebody", 0)
		lease := bounded.Acquire(t, l, "a")
		if at := time.UnixMicro(int64(lease.Token().Seq)); time.Since(at).Abs() > time.Hour {
			t.Errorf("after %s: number %d, which as a time is %v, want now", last, lease.Token().Seq, at)
		}
		bounded.Release(t, lease)
	}
}

func TestNumbersAreNotContinuedBeyond53Bits(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, &redislock.Options{Prefix: prefix})
	for _, last := range []string{
		"9007199254740991", "9007199254740992", "9007199254740993",
		"18446744073709551615", strings.Repeat("9", 400), "1e3", "0x10", "-1", "many",
	} {
		client.Set(t.Context(), key(prefix, "a")+"last", last+" somebody", 0)
		for op, f := range map[string]func() (*locks.Lease, error){
			"Acquire":    func() (*locks.Lease, error) { return l.Acquire(bounded.Context(t), "a") },
			"TryAcquire": func() (*locks.Lease, error) { return l.TryAcquire(bounded.Context(t), "a") },
		} {
			_, err := f()
			if !errors.Is(err, locks.ErrUnsupported) {
				t.Errorf("%s after %q: %v, want ErrUnsupported", op, last, err)
			}
		}
		if n := client.Exists(t.Context(), key(prefix, "a")+"lock").Val(); n != 0 {
			t.Fatalf("after %q: the lock is taken without a number", last)
		}
	}
}

func TestCounterExpiresADayAfterItsNumber(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, &redislock.Options{Prefix: prefix})
	ahead := uint64(time.Now().Add(1000 * time.Hour).UnixMicro())
	client.Set(t.Context(), key(prefix, "a")+"last", fmt.Sprintf("%d somebody", ahead), 0)
	for range 2 { // released by the second round: that must not end the expiry
		lease := bounded.Acquire(t, l, "a")
		bounded.Release(t, lease)
		at := client.Do(t.Context(), "PEXPIRETIME", key(prefix, "a")+"last").Val()
		if want := int64(lease.Token().Seq/1000) + 24*60*60*1000; at != want {
			t.Errorf("the counter expires at %v, want %d", at, want)
		}
	}
}

func TestCounterOutlivesALockThatIsHeldForDays(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, &redislock.Options{Prefix: prefix, TTL: 2 * time.Second})
	lease := bounded.Acquire(t, l, "a")
	last := key(prefix, "a") + "last"
	client.PExpire(t.Context(), last, time.Hour) // as if it had been held for 23 hours
	bounded.Eventually(t, "a renewal keeps the counter for a day", func() bool {
		return client.PTTL(t.Context(), last).Val() > 23*time.Hour
	})
	// A number ahead of the clock is kept for longer, and no renewal shortens that.
	client.PExpire(t.Context(), last, 1000*time.Hour)
	deadline := lease.Deadline()
	bounded.Eventually(t, "it is renewed", func() bool { return lease.Deadline().After(deadline) })
	if left := client.PTTL(t.Context(), last).Val(); left < 999*time.Hour {
		t.Errorf("the counter expires in %v, want what it was", left)
	}
	bounded.Release(t, lease)
}

func TestOnlyGrantsMint(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	l := newLocker(t, client, rarePolls(prefix))
	lease := bounded.Acquire(t, l, "a")
	last := client.Get(t.Context(), key(prefix, "a")+"last").Val()
	if _, err := l.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("TryAcquire: %v, want ErrHeld", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := bounded.Acquiring(ctx, l, "a")
	bounded.Eventually(t, "it waits", func() bool { return waiters(t, client, key(prefix, "a")) == 1 })
	cancel()
	bounded.Receive(t, "the waiter", done)
	if got := client.Get(t.Context(), key(prefix, "a")+"last").Val(); got != last {
		t.Errorf("the last grant was %q and is %q after two attempts that failed", last, got)
	}
	bounded.Release(t, lease)
}

func TestLostReplyOfTheTakeGivesTheSameToken(t *testing.T) {
	t.Parallel()
	prefix := space()
	direct := newClient(t, servers.SharedRedis(t))
	counter := proxy.CountRedis(t, servers.SharedRedis(t))
	l := newLocker(t, newClient(t, counter.Addr()), &redislock.Options{Prefix: prefix})
	bounded.Release(t, bounded.Acquire(t, l, "warm"))

	lost := counter.DropReply("EVALSHA")
	lease := bounded.Acquire(t, l, "a")
	bounded.Receive(t, "the lost reply", lost)
	want := fmt.Sprintf("%d %s", lease.Token().Seq, lease.Token().Holder)
	for _, k := range []string{"lock", "last"} {
		if got := direct.Get(t.Context(), key(prefix, "a")+k).Val(); got != want {
			t.Errorf("%s is %q, want %q: the repeated take minted again", k, got, want)
		}
	}

	lost = counter.DropReply("EVALSHA")
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("Release whose reply was lost once: %v, want nil", err)
	}
	bounded.Receive(t, "the lost reply", lost)
}

// A client library that leaves a reply unread on a connection takes it for the
// reply to the next request. Then b's lock would come with a's number.
func TestReplyToAnotherRequestIsNoGrant(t *testing.T) {
	t.Parallel()
	prefix := space()
	counter := proxy.CountRedis(t, servers.SharedRedis(t))
	client := redis.NewClient(&redis.Options{Addr: counter.Addr(), ContextTimeoutEnabled: true, PoolSize: 1})
	t.Cleanup(func() { client.Close() })
	l := newLocker(t, client, &redislock.Options{Prefix: prefix})
	bounded.Release(t, bounded.Acquire(t, l, "warm")) // the server knows the script from here on
	a := bounded.Acquire(t, l, "a")

	repeated := counter.RepeatReply("EVALSHA")
	b := bounded.Acquire(t, l, "b")
	bounded.Receive(t, "the repeated reply", repeated)
	if want := newClient(t, servers.SharedRedis(t)).Get(t.Context(), key(prefix, "b")+"lock").Val(); want != fmt.Sprintf("%d %s", b.Token().Seq, b.Token().Holder) {
		t.Errorf("the server granted %q, and the token is %v; the number before was %d", want, b.Token(), a.Token().Seq)
	}
	bounded.Release(t, b)
	bounded.Release(t, a)
}

// A take that runs again after its grant was released must not take the lock
// for nobody.
func TestLateCopyOfAReleasedTakeIsRefused(t *testing.T) {
	t.Parallel()
	prefix := space()
	client := newClient(t, servers.SharedRedis(t))
	recorder := &recorder{Client: client}
	l := newLocker(t, recorder, &redislock.Options{Prefix: prefix})
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	if len(recorder.takes) == 0 {
		t.Fatal("no take was recorded")
	}
	for _, again := range recorder.takes {
		if got := again(t.Context()); len(got) != 2 || got[0] != "over" {
			t.Errorf("the late copy got %v, want over", got)
		}
	}
	if n := client.Exists(t.Context(), key(prefix, "a")+"lock").Val(); n != 0 {
		t.Error("the late copy took the lock")
	}
}

// The caller counts from before its newest request, so that request must start
// the server's time anew.
func TestRepeatedTakeCountsTheTTLFromItself(t *testing.T) {
	t.Parallel()
	prefix := space()
	recorder := &recorder{Client: newClient(t, servers.SharedRedis(t))}
	l := newLocker(t, recorder, &redislock.Options{Prefix: prefix, TTL: time.Hour})
	lease := bounded.Acquire(t, l, "a")
	k := key(prefix, "a")
	recorder.PExpire(t.Context(), k+"lock", time.Minute)
	reply := recorder.takes[len(recorder.takes)-1](t.Context())
	if want := strconv.FormatUint(lease.Token().Seq, 10); len(reply) != 3 || reply[0] != "granted" || reply[1] != want {
		t.Errorf("the repeated take got %v, want the same grant, %s", reply, want)
	}
	if left := recorder.PTTL(t.Context(), k+"lock").Val(); left < 59*time.Minute {
		t.Errorf("the lock runs out in %v, want an hour", left)
	}
	bounded.Release(t, lease)
}
