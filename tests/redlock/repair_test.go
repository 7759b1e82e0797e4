package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// repairing is a held lock of which one server, the third, has lost something.
type repairing struct {
	*set
	lease *locks.Lease
	key   string
}

func startRepairing(t *testing.T) *repairing {
	t.Helper()
	s := startSet(t, 3, false)
	prefix := space()
	l := s.redlock(t, &redislock.RedlockOptions{Prefix: prefix, TTL: 8 * time.Second, NodeTimeout: 2 * time.Second})
	lease := bounded.Acquire(t, l, "a")
	r := &repairing{s, lease, keyOf(prefix, "a")}
	bounded.Eventually(t, "all servers have the lock", func() bool {
		return s.all(func(i int) bool { return s.get(t, i, r.key+"lock") == lease.Token().Holder })
	})
	return r
}

// renewed waits until renewals have come to an end that began after now.
func (r *repairing) renewed(t *testing.T) {
	t.Helper()
	for range 2 {
		before := r.lease.Deadline()
		bounded.Eventually(t, "a renewal", func() bool { return r.lease.Deadline().After(before) || r.lease.Context().Err() != nil })
	}
	if err := r.lease.Context().Err(); err != nil {
		t.Fatalf("the lease ended: %v", context.Cause(r.lease.Context()))
	}
}

func (r *repairing) loses(t *testing.T, what string) {
	t.Helper()
	if n := r.clients[2].Del(t.Context(), r.key+what).Val(); n != 1 {
		t.Fatalf("there was no %s", what)
	}
}

func TestRenewalRepairsAServer(t *testing.T) {
	t.Parallel()
	r := startRepairing(t)
	r.loses(t, "lock")
	token := r.lease.Token()
	bounded.Eventually(t, "the server has the lock again", func() bool { return r.get(t, 2, r.key+"lock") == token.Holder })
	if got, want := r.get(t, 2, r.key+"count"), fmt.Sprint(token.Seq, " ", token.Holder); got != want {
		t.Errorf("its counter is %q, want %q", got, want)
	}
	bounded.Release(t, r.lease)
}

func TestServerWithoutACounterIsNotRepaired(t *testing.T) {
	t.Parallel()
	r := startRepairing(t)
	r.clients[2].Del(t.Context(), r.key+"lock", r.key+"count")
	r.renewed(t)
	if got := r.get(t, 2, r.key+"lock"); got != "" {
		t.Errorf("the server that has forgotten has the lock of %q", got)
	}
	bounded.Release(t, r.lease)
}

func TestServerThatHasPassedTheTokenIsNotRepaired(t *testing.T) {
	t.Parallel()
	r := startRepairing(t)
	passed := r.ahead(t, 2, r.key)
	r.loses(t, "lock")
	r.renewed(t)
	if got := r.get(t, 2, r.key+"lock"); got != "" {
		t.Errorf("the server whose counter is higher has the lock of %q", got)
	}
	if got, want := r.get(t, 2, r.key+"count"), fmt.Sprint(passed, " another"); got != want {
		t.Errorf("its counter is %q, want %q", got, want)
	}
	bounded.Release(t, r.lease)
}

// With one server left a renewal makes nothing again, not even there.
func TestRenewalNeedsAMajority(t *testing.T) {
	t.Parallel()
	r := startRepairing(t)
	r.renewed(t) // so that none comes between
	var written [2]func() []string
	for i, client := range r.clients[:2] {
		client.Del(t.Context(), r.key+"lock")
		written[i] = events(t, client, r.key+"lock")
	}
	deadline := r.lease.Deadline()
	bounded.Eventually(t, "the lease ends, or is renewed for longer", func() bool {
		return r.lease.Context().Err() != nil || r.lease.Deadline().After(deadline.Add(5*time.Second))
	})
	if err := context.Cause(r.lease.Context()); !errors.Is(err, locks.ErrLost) {
		t.Errorf("the lease ended with %v, want ErrLost", err)
	}
	// The removal that follows the loss would hide it.
	for i, happened := range written {
		if all := happened(); slices.Contains(all, "set") {
			t.Errorf("server %d had the lock again: %v", i+1, all)
		}
	}
	_ = r.lease.Release(t.Context())
}

// events notes what happens to a key from now on, until it is asked.
func events(t *testing.T, client *redis.Client, key string) (happened func() []string) {
	t.Helper()
	ctx := bounded.Context(t)
	if err := client.ConfigSet(ctx, "notify-keyspace-events", "KA").Err(); err != nil {
		t.Fatal(err)
	}
	channel := "__keyspace@0__:" + key
	heard := client.Subscribe(ctx, channel)
	t.Cleanup(func() { heard.Close() })
	if _, err := heard.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	return func() (all []string) {
		const end = "asked"
		if err := client.Publish(ctx, channel, end).Err(); err != nil {
			t.Fatal(err)
		}
		for {
			m, err := heard.ReceiveMessage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if m.Payload == end {
				return all
			}
			all = append(all, m.Payload)
		}
	}
}

// One that was late with its take has another number. The renewal brings it into
// step, so that the token is verified there as well.
func TestRenewalBringsAServerIntoStep(t *testing.T) {
	t.Parallel()
	r := startRepairing(t)
	token := r.lease.Token()
	r.clients[2].Set(t.Context(), r.key+"count", fmt.Sprint(token.Seq-5, " ", token.Holder), time.Hour)
	want := fmt.Sprint(token.Seq, " ", token.Holder)
	bounded.Eventually(t, "its counter is the token", func() bool { return r.get(t, 2, r.key+"count") == want })
	bounded.Release(t, r.lease)
}

// A counter is kept for a day after its number, and a lease may be older than that.
func TestCounterOfAnOldLeaseIsKept(t *testing.T) {
	t.Parallel()
	client, base := newClient(t, servers.SharedRedis(t)), space()
	script := redis.NewScript(readScripts(t).texts[renewScript])
	client.Set(t.Context(), base+"node", "one server", time.Hour)
	token := time.Now().Add(-48 * time.Hour).UnixMicro()
	for i, c := range []struct{ lock, count, want string }{
		{"", fmt.Sprint(token, " me"), "repaired"},
		{"me", fmt.Sprint(token, " me"), "renewed"},
		{"me", fmt.Sprint(token-5, " me"), "renewed"},
		{"me", "", "renewed"},
	} {
		key := fmt.Sprint(base, i)
		for what, value := range map[string]string{"lock": c.lock, "count": c.count} {
			if value != "" {
				client.Set(t.Context(), key+what, value, time.Hour)
			}
		}
		reply, err := script.Run(t.Context(), client, []string{key + "lock", key + "count", key + "gone", base + "node"},
			"me", token, time.Minute.Milliseconds(), 1, "one server", "request").Slice()
		if err != nil || reply[0] != c.want {
			t.Fatalf("lock %q, counter %q: %v, %v, want %s", c.lock, c.count, reply, err, c.want)
		}
		if got, want := client.Get(t.Context(), key+"count").Val(), fmt.Sprint(token, " me"); got != want {
			t.Errorf("lock %q, counter %q: the counter is now %q, want %q", c.lock, c.count, got, want)
		}
		if left := client.PTTL(t.Context(), key+"count").Val(); left < 23*time.Hour {
			t.Errorf("lock %q, counter %q: it is kept for %v, want a day", c.lock, c.count, left)
		}
	}
}
