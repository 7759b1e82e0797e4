package redislock_test

import (
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// The server counts from when the request arrived, so the holder must count from
// before it, however late the reply is.
func TestTheDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Second
	counter := proxy.CountRedis(t, servers.SharedRedis(t))
	l := newLocker(t, newClient(t, counter.Addr()), &redislock.Options{Prefix: space(), TTL: ttl})
	bounded.Release(t, bounded.Acquire(t, l, "a")) // the server knows the scripts
	notLater := func(what string, deadline, granted time.Time) {
		t.Helper()
		if late := deadline.Sub(granted.Add(locks.Validity(ttl))); late > 0 {
			t.Errorf("%s: the deadline is %v after what the server had granted by then", what, late)
		}
	}

	held, release := counter.HoldReply("EVALSHA")
	done := bounded.Acquiring(bounded.Context(t), l, "a")
	bounded.Receive(t, "the reply to the take", held)
	granted := time.Now()
	release()
	lease := bounded.Granted(t, "Acquire", done)
	notLater("the grant", lease.Deadline(), granted)

	// Asked before the renewal is due, a third of the lease time from now.
	held, release = counter.HoldReply("EVALSHA")
	before := lease.Deadline()
	bounded.Receive(t, "the reply to the renewal", held)
	granted = time.Now()
	release()
	bounded.Eventually(t, "the renewal", func() bool { return lease.Deadline().After(before) })
	notLater("the renewal", lease.Deadline(), granted)
	bounded.Release(t, lease)
}
