package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// refused wants an *fence.UnverifiedError with this reason and returns it.
func refused(t *testing.T, what string, err, reason error) *fence.UnverifiedError {
	t.Helper()
	if !errors.Is(err, fence.ErrUnverified) || !errors.Is(err, reason) {
		t.Errorf("%s: %v, want ErrUnverified with %v", what, err, reason)
	}
	e, ok := errors.AsType[*fence.UnverifiedError](err)
	if !ok {
		t.Fatalf("%s: %v is no UnverifiedError", what, err)
	}
	return e
}

func TestVerifyConfirmsTheCurrentGrantOnly(t *testing.T) {
	t.Parallel()
	prefix, ctx := space(), bounded.Context(t)
	client, k := newClient(t, servers.SharedRedis(t)), key(prefix, "a")
	l := newLocker(t, client, rarePolls(prefix))
	lease := bounded.Acquire(t, l, "a")
	token := lease.Token()
	if err := l.Verify(ctx, "a", token); err != nil {
		t.Errorf("the current grant: %v, want nil", err)
	}
	other := bounded.Acquire(t, l, "b")
	with := func(f func(*fence.Token)) fence.Token {
		changed := token
		f(&changed)
		return changed
	}
	for what, c := range map[string]struct {
		resource string
		token    fence.Token
		reason   error
	}{
		"a higher number":         {"a", with(func(t *fence.Token) { t.Seq++ }), fence.ErrNotGranted},
		"a lower number":          {"a", with(func(t *fence.Token) { t.Seq-- }), fence.ErrNotGranted},
		"no number":               {"a", with(func(t *fence.Token) { t.Seq = 0 }), fence.ErrNotGranted},
		"another holder":          {"a", with(func(t *fence.Token) { t.Holder += "0" }), fence.ErrNotGranted},
		"no holder":               {"a", with(func(t *fence.Token) { t.Holder = "" }), fence.ErrNotGranted},
		"a bare number":           {"a", fence.Number(token.Seq), fence.ErrNoVerifier},
		"another lineage":         {"a", with(func(t *fence.Token) { t.Lineage += "x" }), fence.ErrNoVerifier},
		"the grant of b":          {"a", other.Token(), fence.ErrNoVerifier},
		"the grant of a for b":    {"b", token, fence.ErrNoVerifier},
		"the grant of a as b's":   {"b", with(func(t *fence.Token) { t.Lineage = other.Token().Lineage }), fence.ErrNotGranted},
		"a number of a free lock": {"c", with(func(t *fence.Token) { t.Lineage = "redis:" + strings.ReplaceAll(prefix, ":", "%3A") + ":c" }), fence.ErrNotGranted},
		"nothing of a free lock":  {"c", fence.Token{Lineage: "redis:" + strings.ReplaceAll(prefix, ":", "%3A") + ":c"}, fence.ErrNotGranted},
	} {
		e := refused(t, what, l.Verify(ctx, c.resource, c.token), c.reason)
		if c.resource == "a" && c.reason == fence.ErrNotGranted && e.Current != token {
			t.Errorf("%s: the error tells of %v, want %v", what, e.Current, token)
		}
	}

	dead(t, client, k, "dead.1")
	bounded.Release(t, lease)
	has(t, client, k, "reserved dead.1")
	for what, c := range map[string]fence.Token{
		"a released grant":               token,
		"the waiter of a reserved lock":  {Seq: token.Seq + 1, Holder: "dead.1", Lineage: token.Lineage},
		"the waiter, without any number": {Holder: "dead.1", Lineage: token.Lineage},
	} {
		if e := refused(t, what, l.Verify(ctx, "a", c), fence.ErrNotGranted); !e.Current.IsZero() {
			t.Errorf("%s: the error tells of the grant %v, want none", what, e.Current)
		}
	}
	client.Set(ctx, k+"lock", "by hand", 0)
	refused(t, "a key that is no grant", l.Verify(ctx, "a", token), fence.ErrNotGranted)
}

func TestVerifyIsOneRequest(t *testing.T) {
	t.Parallel()
	counter := proxy.CountRedis(t, servers.SharedRedis(t))
	l := newLocker(t, newClient(t, counter.Addr()), &redislock.Options{Prefix: space(), TTL: time.Minute})
	lease := bounded.Acquire(t, l, "a")
	for range 2 { // the first loads the script
		counter.Reset()
		if err := l.Verify(bounded.Context(t), "a", lease.Token()); err != nil {
			t.Fatal(err)
		}
	}
	if got := counter.Requests(); len(got) != 1 {
		t.Errorf("requests %v, want one", got)
	}
}

// A replica would answer from what it had copied, so it is not believed.
func TestVerifyAsksAPrimary(t *testing.T) {
	t.Parallel()
	primary, replica := servers.StartRedis(t, nil), servers.StartRedis(t, nil)
	copied := newClient(t, replica.Addr())
	follow(t, copied, primary.Addr())
	client := newClient(t, primary.Addr())
	lease := bounded.Acquire(t, newLocker(t, client, rarePolls("p")), "a")
	want := client.Get(t.Context(), key("p", "a")+"lock").Val()
	bounded.Eventually(t, "the replica has the grant", func() bool {
		return copied.Get(t.Context(), key("p", "a")+"lock").Val() == want
	})
	err := newLocker(t, copied, rarePolls("p")).Verify(bounded.Context(t), "a", lease.Token())
	if refused(t, "a replica", err, fence.ErrNoAnswer); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("a replica: %v, want it over ErrUnreachable", err)
	}
}

func TestVerifyTellsSilenceFromRefusal(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	o := &redislock.Options{TTL: time.Minute, RequestTimeout: 300 * time.Millisecond}
	l := newLocker(t, newClient(t, srv.Addr()), o)
	lease := bounded.Acquire(t, l, "a")
	srv.Pause(t)
	err := l.Verify(bounded.Context(t), "a", lease.Token())
	if refused(t, "a silent server", err, fence.ErrNoAnswer); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("a silent server: %v, want it over ErrUnreachable", err)
	}
	why := errors.New("the caller's reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	err = l.Verify(ctx, "a", lease.Token())
	if refused(t, "a cancelled caller", err, fence.ErrNoAnswer); errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("a cancelled caller: %v, want it over context.Canceled only", err)
	}
	for _, want := range []error{locks.ErrCancelled, context.Canceled, why} {
		if !errors.Is(err, want) {
			t.Errorf("a cancelled caller: %v, want it over %v", err, want)
		}
	}
	srv.Resume(t)
	if err := l.Verify(bounded.Context(t), "a", lease.Token()); err != nil {
		t.Errorf("the server is back: %v, want nil", err)
	}
	bounded.Release(t, lease)
	closeLocker(t, l)
	err = l.Verify(bounded.Context(t), "a", lease.Token())
	if refused(t, "a closed Locker", err, fence.ErrNoAnswer); !errors.Is(err, locks.ErrClosed) {
		t.Errorf("a closed Locker: %v, want it over ErrClosed", err)
	}
}

// A failover that lost the grant: the new primary never heard of it.
func TestGrantThatTheServerForgotIsNotVerified(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, nil)
	l := newLocker(t, newClient(t, srv.Addr()), rarePolls("p"))
	lease := bounded.Acquire(t, l, "a")
	srv.Restart(t)
	bounded.Eventually(t, "the server answers", func() bool {
		return errors.Is(l.Verify(bounded.Context(t), "a", lease.Token()), fence.ErrNotGranted)
	})
}
