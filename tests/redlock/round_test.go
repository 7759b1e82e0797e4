package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// patient are options under which nothing runs out in a test by itself.
func patient(prefix string) *redislock.RedlockOptions {
	return &redislock.RedlockOptions{Prefix: prefix, TTL: 5 * time.Minute, NodeTimeout: 20 * time.Second}
}

// warm makes the servers a set, loads the scripts and connects l, and returns when
// the servers have heard all of that.
func warm(t *testing.T, s *set, prefix string, l *redislock.Redlock, w *wires) {
	t.Helper()
	bounded.Eventually(t, "all servers are in step", func() bool {
		lease := bounded.Acquire(t, l, "warm")
		bounded.Release(t, lease)
		want := fmt.Sprint(lease.Token().Seq, " ", lease.Token().Holder, " released")
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range 1000 {
			if s.all(func(i int) bool { return s.get(t, i, keyOf(prefix, "warm")+"count") == want }) {
				return true
			}
			<-tick.C
		}
		return false
	})
	w.reset()
}

// all is whether something is true of every server.
func (s *set) all(is func(server int) bool) bool {
	for i := range s.servers {
		if !is(i) {
			return false
		}
	}
	return true
}

// each server has got one request, and no other.
func (w *wires) oneEach(t *testing.T, what string) {
	t.Helper()
	for i, c := range w.counters {
		bounded.Eventually(t, fmt.Sprintf("%s: a request to server %d", what, i+1), func() bool { return len(c.Requests()) > 0 })
		if got := c.Requests(); !slices.Equal(got, []string{"EVALSHA"}) {
			t.Errorf("%s: server %d got %v, want one EVALSHA", what, i+1, got)
		}
	}
	w.reset()
}

func TestInStepARoundIsOneRequestPerServer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := startSet(t, n, false)
			prefix := space()
			l, w := s.wiredRedlock(t, patient(prefix))
			warm(t, s, prefix, l, w)
			for range 3 {
				lease := bounded.Acquire(t, l, "a")
				w.oneEach(t, "acquire")
				bounded.Release(t, lease)
				w.oneEach(t, "release")
			}
		})
	}
}

// ahead sets a server's counter an hour ahead of all clocks, so that it is the
// counter that counts, and returns it.
func (s *set) ahead(t *testing.T, server int, key string) uint64 {
	t.Helper()
	n := uint64(time.Now().Add(time.Hour).UnixMicro())
	if err := s.clients[server].Set(t.Context(), key+"count", fmt.Sprintf("%d another", n), 0).Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *set) get(t *testing.T, server int, key string) string {
	t.Helper()
	value, err := s.clients[server].Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return value
}

func TestHighestNumberIsWrittenBack(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	l, w := s.wiredRedlock(t, patient(prefix))
	warm(t, s, prefix, l, w)
	ahead := s.ahead(t, 0, k)
	s.servers[2].Kill(t) // the majority is the one ahead and one that is not
	lease := bounded.Acquire(t, l, "a")
	token := lease.Token()
	if token.Seq != ahead+1 {
		t.Errorf("the token is %d, want the highest number, %d", token.Seq, ahead+1)
	}
	for i := range 2 {
		if got, want := s.get(t, i, k+"count"), fmt.Sprint(token.Seq, " ", token.Holder); got != want {
			t.Errorf("server %d has the counter %q, want %q", i+1, got, want)
		}
	}
	// It does not know the script of the confirmation yet.
	if got, want := w.counters[1].Requests(), []string{"EVALSHA", "EVALSHA", "EVAL"}; !slices.Equal(got, want) {
		t.Errorf("the server that was behind got %v, want a take and a confirmation: %v", got, want)
	}
	bounded.Release(t, lease)
}

// Any two majorities share a server, and that is enough.
func TestTokensRiseFromMajorityToMajority(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, true)
	prefix := space()
	l := s.redlock(t, patient(prefix))
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	last := s.ahead(t, 0, keyOf(prefix, "a"))
	for _, down := range []int{2, 0, 1, 2, 1, 0} {
		s.servers[down].Kill(t)
		lease := bounded.Acquire(t, l, "a")
		if got := lease.Token().Seq; got <= last {
			t.Errorf("without server %d: number %d after %d", down+1, got, last)
		}
		last = lease.Token().Seq
		bounded.Release(t, lease)
		s.servers[down].Start(t)
	}
}

func TestLateReplyIsNotCounted(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	l, w := s.wiredRedlock(t, patient(prefix))
	warm(t, s, prefix, l, w)
	ahead := s.ahead(t, 2, k)
	held, release := w.counters[2].HoldReply("EVALSHA")
	done := bounded.Acquiring(bounded.Context(t), l, "a")
	bounded.Receive(t, "the late reply", held)
	var lease *locks.Lease
	select {
	case r := <-done:
		release()
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		lease = r.Lease
	case <-time.After(bounded.Patience / 3):
		t.Error("Acquire waits for the late reply")
		release()
		lease = bounded.Granted(t, "Acquire", done)
	}
	if got := lease.Token().Seq; got >= ahead {
		t.Errorf("the token is %d, of the server whose reply came late", got)
	}
	if err := l.Verify(bounded.Context(t), "a", lease.Token()); err != nil {
		t.Errorf("Verify: %v", err)
	}
	bounded.Release(t, lease)
}

// Two of three servers are another's, and the third is free.
func TestMinorityIsGivenBack(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	l := s.redlock(t, patient(prefix))
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	for i := range 2 {
		s.clients[i].Set(t.Context(), k+"lock", "another", 0)
	}
	lease, err := l.TryAcquire(bounded.Context(t), "a")
	if !errors.Is(err, locks.ErrHeld) {
		t.Fatalf("TryAcquire: %v, %v, want ErrHeld", lease, err)
	}
	bounded.Eventually(t, "the third server is free", func() bool { return s.get(t, 2, k+"lock") == "" })
	for i := range 2 {
		if got := s.get(t, i, k+"lock"); got != "another" {
			t.Errorf("server %d: the lock is %q's, want another's", i+1, got)
		}
	}
}

// The same while it waits: the third server is free for others meanwhile.
func TestMinorityIsGivenBackBeforeTheWait(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	l, w := s.wiredRedlock(t, rarePolls(prefix))
	warm(t, s, prefix, l, w)
	for i := range 2 {
		s.clients[i].Set(t.Context(), k+"lock", "another", 0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := bounded.Acquiring(ctx, l, "a")
	bounded.Eventually(t, "it has taken the third server and given it back", func() bool {
		return strings.HasSuffix(s.get(t, 2, k+"count"), " released") && s.get(t, 2, k+"lock") == ""
	})
	cancel()
	if r := bounded.Receive(t, "the waiter", done); !errors.Is(r.Err, locks.ErrCancelled) || !errors.Is(r.Err, locks.ErrHeld) {
		t.Errorf("Acquire: %v, want ErrCancelled and ErrHeld", r.Err)
	}
}

// losing is a client of a server that loses the lock before its first confirmation.
type losing struct {
	*redis.Client
	lock string
	once sync.Once
}

func (l *losing) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if fmt.Sprint(len(keys), " ", len(args)) == confirmScript {
		l.once.Do(func() { l.Del(ctx, l.lock) })
	}
	return l.Client.EvalSha(ctx, sha, keys, args...)
}

func TestMajorityMustConfirm(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	k := keyOf(prefix, "a")
	second := &losing{Client: s.clients[1], lock: k + "lock"}
	l := newRedlock(t, []redislock.Client{s.clients[0], second, s.clients[2]}, patient(prefix))
	bounded.Release(t, bounded.Acquire(t, l, "warm"))
	ahead := s.ahead(t, 0, k)
	s.servers[2].Kill(t)
	lease := bounded.Acquire(t, l, "a")
	token := lease.Token()
	if token.Seq <= ahead+1 {
		t.Errorf("the token is %d, which one server has confirmed, want a higher one of another round", token.Seq)
	}
	for i := range 2 {
		if got, want := s.get(t, i, k+"count"), fmt.Sprint(token.Seq, " ", token.Holder); got != want {
			t.Errorf("server %d has the counter %q, want %q", i+1, got, want)
		}
	}
	bounded.Release(t, lease)
}

// The servers count the lease time from when they took the lock, which is after the
// request was sent and long before its reply came.
func TestTimeCountsFromBeforeTheRound(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	o := patient(prefix)
	l, w := s.wiredRedlock(t, o)
	warm(t, s, prefix, l, w)
	const slow = 2 * time.Second
	for _, n := range w.networks {
		n.Latency(t, slow)
	}
	before := time.Now()
	lease := bounded.Acquire(t, l, "a")
	if got, most := lease.Deadline().Sub(before), locks.Validity(o.TTL)+slow/2; got > most {
		t.Errorf("the deadline is %v after the request, want at most %v", got, most)
	}
	for _, n := range w.networks {
		n.Heal(t)
	}
	bounded.Release(t, lease)
}

// No grant comes from replies that took the whole lease time.
func TestGrantThatHasRunOutIsNotReturned(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	o := &redislock.RedlockOptions{Prefix: prefix, TTL: 400 * time.Millisecond, NodeTimeout: 100 * time.Millisecond}
	l, w := s.wiredRedlock(t, patient(prefix))
	warm(t, s, prefix, l, w)
	slow, sw := s.wiredRedlock(t, o)
	for _, n := range sw.networks {
		n.Latency(t, 300*time.Millisecond) // beyond NodeTimeout
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if lease, err := slow.Acquire(ctx, "a"); !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("Acquire: %v, %v, want ErrCancelled and ErrUnreachable", lease, err)
	}
}

// A connection on which a reply was left unread gives every later request the reply
// before it.
func TestReplyToAnotherRequestIsNotCounted(t *testing.T) {
	t.Parallel()
	s := startSet(t, 3, false)
	prefix := space()
	l, w := s.wiredRedlock(t, patient(prefix))
	warm(t, s, prefix, l, w)
	first := bounded.Acquire(t, l, "a")
	w.oneEach(t, "acquire")
	for _, c := range w.counters {
		c.RepeatReply("EVALSHA")
	}
	lease, err := l.TryAcquire(bounded.Context(t), "b")
	if err == nil && lease.Token().Seq == first.Token().Seq {
		t.Errorf("b got the token of a, %v", lease.Token())
	}
	if err != nil && !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("TryAcquire: %v, want ErrUnreachable", err)
	}
}
