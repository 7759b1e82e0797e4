package deployments_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// The leader's machine dies, and takes one client's network with it. Of three
// locks, one is held by a client that stays in touch, one by the client that
// is cut off, and one is taken and given back all the time.
func TestTheLeaderIsKilled(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start func(t testing.TB) *deployment
	}{
		{"Redis under Sentinels", redisUnderSentinels},
		{"Redis Cluster, a replica takes over", redisClusterWithReplicas},
		{"Redis Cluster, the master comes back", redisClusterOfMasters},
		{"Redlock, one server of three", redlockServers},
		{"ZooKeeper ensemble", zooKeeperEnsemble},
		{"etcd cluster", etcdCluster},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			leaderIsKilled(t, tt.start(t))
		})
	}
}

func leaderIsKilled(t *testing.T, d *deployment) {
	kept, lost, taken := d.name(t, "kept"), d.name(t, "lost"), d.name(t, "taken")
	way := newNetwork(t, d.addrs)
	cutOff := d.connect(t, way, short)
	holder := bounded.Acquire(t, d.connect(t, nil, long), kept)
	loser := bounded.Acquire(t, cutOff, lost)
	successor := d.wait(t, kept, holder)
	winner := d.wait(t, lost, loser)
	other := take(t, d.connect(t, nil, long), taken)
	other.more(t)

	way.cut(t)
	d.killLeader(t)

	next := receive(t, "the waiter behind the client that is cut off", winner)
	if !next.told {
		t.Errorf("%q was granted again while its holder trusted its lease", lost)
	}
	if cause := context.Cause(loser.Context()); !errors.Is(cause, locks.ErrLost) {
		t.Errorf("the lease that was cut off ended by %v, want ErrLost", cause)
	}
	t.Logf("the lease that was cut off ended %v before the lock was granted again", next.at.Sub(loser.Deadline()))
	rises(t, loser.Token(), next.lease.Token())
	last := next.lease.Token()
	giveBack(t, next.lease)

	other.more(t)
	if holder.Context().Err() != nil {
		t.Errorf("the lease of %v did not outlive the leader: %v", long, context.Cause(holder.Context()))
	}
	giveBack(t, holder)
	next = receive(t, "the waiter behind the client in touch", successor)
	if !next.told {
		t.Errorf("%q was granted again while its holder trusted its lease", kept)
	}
	rises(t, holder.Token(), next.lease.Token())
	giveBack(t, next.lease)

	way.heal(t) // what was under way arrives late
	again := bounded.Acquire(t, cutOff, lost)
	rises(t, last, again.Token())
	giveBack(t, again)
	if err := loser.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
		t.Errorf("release of the lost lease: %v, want ErrLost", err)
	}

	other.end(t)
	for _, name := range []string{kept, lost, taken} {
		giveBack(t, bounded.Acquire(t, d.connect(t, nil, long), name))
		var left []string
		bounded.Eventually(t, "nothing is left of "+name, func() bool {
			left = d.entries(t, name)
			return len(left) == 0
		})
	}
}

// giveBack releases a lease. A request may still go to the dead server, or come
// too late; removal then goes on.
func giveBack(t testing.TB, lease *locks.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil && !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("release %q: %v", lease.Name(), err)
	}
}

// grant is what a waiter got.
type grant struct {
	lease *locks.Lease
	err   error
	at    time.Time
	told  bool // the holder before knew by then that it held the lock no more
}

// wait puts a client of its own behind the holder. Another grant of that client
// shows that it has heard of its place by then: a fault before that would end
// Acquire.
func (d *deployment) wait(t testing.TB, name string, holder *locks.Lease) <-chan grant {
	t.Helper()
	ctx, l := bounded.Context(t), d.connect(t, nil, long)
	granted := make(chan grant, 1)
	go func() {
		lease, err := l.Acquire(ctx, name)
		granted <- grant{lease, err, time.Now(), holder.Context().Err() != nil}
	}()
	bounded.Eventually(t, "the waiter's entry", func() bool { return len(d.entries(t, name)) == 2 })
	if err := bounded.Acquire(t, l, d.name(t, "beside "+name)).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return granted
}

func receive(t testing.TB, who string, granted <-chan grant) grant {
	t.Helper()
	g := bounded.Receive(t, who, granted)
	if g.err != nil {
		t.Fatalf("%s: %v", who, g.err)
	}
	return g
}

func rises(t testing.TB, before, after fence.Token) {
	t.Helper()
	if after.Lineage != before.Lineage || after.Seq <= before.Seq {
		t.Errorf("token %v after %v, want a higher number of one lineage", after, before)
	}
}

// taker takes a lock and gives it back until end.
type taker struct {
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	tokens []fence.Token
	err    error // that no outage explains
}

func take(t testing.TB, l locks.Locker, name string) *taker {
	ctx, cancel := context.WithCancel(t.Context())
	k := &taker{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for ctx.Err() == nil {
			lease, err := l.Acquire(ctx, name)
			if err == nil {
				k.note(lease.Token(), nil)
				err = lease.Release(ctx)
			}
			if ctx.Err() == nil && !errors.Is(err, locks.ErrUnreachable) && !errors.Is(err, locks.ErrLost) {
				k.note(fence.Token{}, err)
			}
			<-pace.C
		}
	}()
	t.Cleanup(func() { cancel(); <-k.done })
	return k
}

func (k *taker) note(token fence.Token, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.err = err
	} else if !token.IsZero() {
		k.tokens = append(k.tokens, token)
	}
}

func (k *taker) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.tokens)
}

// more waits for three more grants.
func (k *taker) more(t testing.TB) {
	t.Helper()
	from := k.count()
	bounded.Eventually(t, "three more grants", func() bool { return k.count() >= from+3 })
}

// end looks at all the grants there were.
func (k *taker) end(t testing.TB) {
	t.Helper()
	k.stop()
	<-k.done
	if k.err != nil {
		t.Errorf("a client that takes and gives back: %v", k.err)
	}
	for i := range k.tokens[1:] {
		rises(t, k.tokens[i], k.tokens[i+1])
	}
}
