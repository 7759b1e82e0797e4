package redislock_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// logged collects what a Locker logs.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: l, Level: hclog.Debug})
}

func TestDialWithPassword(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, &servers.RedisOptions{Password: "s3cret/word"})
	l, err := redislock.Dial("redis://:s3cret%2Fword@"+srv.Addr()+"/0", nil)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Release(t, bounded.Acquire(t, l, "a"))
	closeLocker(t, l)

	l, err = redislock.Dial("redis://:wr0ng-one@"+srv.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLocker(t, l)
	// Without a deadline: a refused password does not get better by waiting.
	_, err = l.Acquire(bounded.Context(t), "a")
	if !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("Acquire with a wrong password: %v, want ErrUnreachable", err)
	}
	if strings.Contains(fmt.Sprint(err), "wr0ng") {
		t.Errorf("the error shows the password: %v", err)
	}
}

// The commands and patterns that the package comment lists are enough.
const rights = "~fencedkv:* resetchannels -@all +eval +evalsha +get +mget +exists +set +del +pexpire +pttl +time " +
	"+zadd +zrem +zrange +zrangebyscore +zrank +zscore +publish +subscribe +ping"

func TestUserWithTheListedRightsCanLock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what, channels string
		o              *redislock.Options
		warns          bool
	}{
		{"with channels", " &fencedkv:*", rarePolls(""), false},
		{"without channels", "", &redislock.Options{TTL: time.Minute, PollInterval: 20 * time.Millisecond}, true},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			srv := servers.StartRedis(t, &servers.RedisOptions{Config: []string{"user alice on >secret " + rights + test.channels}})
			client := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: "alice", Password: "secret", ContextTimeoutEnabled: true})
			t.Cleanup(func() { client.Close() })
			log := new(logged)
			test.o.Logger = log.logger()
			l := newLocker(t, client, test.o)
			admin := newClient(t, srv.Addr())

			lease := bounded.Acquire(t, l, "a")
			done := bounded.Acquiring(bounded.Context(t), l, "a")
			k, subscribed := key("fencedkv", "a"), 1
			if test.warns {
				subscribed = 0
				bounded.Eventually(t, "the warning", func() bool { return strings.Contains(log.String(), "waiters cannot hear of a release") })
			}
			bounded.Eventually(t, "it waits", func() bool {
				return waiters(t, admin, k) == 1 && listening(t, admin, "fencedkv") == subscribed
			})
			bounded.Release(t, lease)
			bounded.Release(t, bounded.Granted(t, "the waiter", done))
			if got := strings.Contains(log.String(), "[WARN]"); got != test.warns {
				t.Errorf("warnings: %v, want %v; log:\n%s", got, test.warns, log)
			}
			if !strings.Contains(log.String(), "NOPERM") {
				t.Errorf("nothing tells that INFO was refused; log:\n%s", log)
			}
		})
	}
}

func TestMissingRightIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, &servers.RedisOptions{Config: []string{"user bob on >secret ~other:* +@all"}})
	client := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: "bob", Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	_, err := newLocker(t, client, nil).Acquire(bounded.Context(t), "a")
	if !errors.Is(err, locks.ErrUnreachable) || !strings.Contains(fmt.Sprint(err), "NOPERM") {
		t.Errorf("Acquire: %v, want ErrUnreachable with NOPERM", err)
	}
}

// As managed servers do it.
func TestRenamedInfoIsNotNeeded(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, &servers.RedisOptions{Config: []string{`rename-command INFO ""`}})
	l := newLocker(t, newClient(t, srv.Addr()), nil)
	bounded.Release(t, bounded.Acquire(t, l, "a"))
}

// The calls have no deadline: what does not get better is not waited for.
func TestAnswerThatWouldNotChangeIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	srv := servers.StartRedis(t, &servers.RedisOptions{Config: []string{`rename-command EVALSHA ""`}})
	for what, db := range map[string]int{"unknown command": 0, "DB index is out of range": 16} {
		client := redis.NewClient(&redis.Options{Addr: srv.Addr(), DB: db, ContextTimeoutEnabled: true})
		t.Cleanup(func() { client.Close() })
		select {
		case r := <-bounded.Acquiring(bounded.Context(t), newLocker(t, client, nil), "a"):
			if !errors.Is(r.Err, locks.ErrUnreachable) || !strings.Contains(fmt.Sprint(r.Err), what) {
				t.Errorf("Acquire: %v, want ErrUnreachable with %q", r.Err, what)
			}
		case <-time.After(bounded.Patience):
			t.Errorf("Acquire still asks %v after %q", bounded.Patience, what)
		}
	}
}

func TestEvictionPolicyIsCheckedOnce(t *testing.T) {
	t.Parallel()
	for policy, warns := range map[string]int{"volatile-lru": 1, "allkeys-random": 1, "noeviction": 0} {
		srv := servers.StartRedis(t, &servers.RedisOptions{Config: []string{"maxmemory-policy " + policy}})
		log := new(logged)
		l := newLocker(t, newClient(t, srv.Addr()), &redislock.Options{Logger: log.logger()})
		bounded.Release(t, bounded.Acquire(t, l, "a"))
		bounded.Release(t, bounded.Acquire(t, l, "b"))
		if got := strings.Count(log.String(), "set maxmemory-policy to noeviction"); got != warns {
			t.Errorf("%s: %d warnings, want %d; log:\n%s", policy, got, warns, log)
		}
	}
}
