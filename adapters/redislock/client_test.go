package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/locks"
)

func TestNilClientIsRefused(t *testing.T) {
	for _, none := range []redislock.Client{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		if _, err := redislock.New(none, nil); !errors.Is(err, locks.ErrBadOption) {
			t.Errorf("New of a nil %T: %v, want ErrBadOption", none, err)
		}
	}
}

func TestDialRefusesAPortThatIsNone(t *testing.T) {
	for _, address := range []string{"redis://127.0.0.1:99999", "redis://u:secret@127.0.0.1:0"} {
		_, err := redislock.Dial(address, nil)
		if !errors.Is(err, locks.ErrBadOption) || !strings.Contains(err.Error(), "65535") {
			t.Errorf("Dial %s: %v, want ErrBadOption that names the ports there are", address, err)
		}
	}
}

func TestRingIsRefused(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	defer ring.Close()
	if l, err := redislock.New(ring, nil); !errors.Is(err, locks.ErrBadOption) || l != nil {
		t.Errorf("New on a Ring: %v, %v, want ErrBadOption", l, err)
	}
}

// WAIT with a timeout of 0 waits for ever.
func TestWaitForReplicasHasATimeoutHoweverShort(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	var asked []any
	client.AddHook(&pipelines{func(cmds []redis.Cmder) error {
		asked = cmds[len(cmds)-1].Args()
		for _, cmd := range cmds {
			cmd.SetErr(errRefused)
		}
		return errRefused
	}})
	l, err := redislock.New(client, &redislock.Options{WaitReplicas: 2, TTL: 50 * time.Millisecond, RequestTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	eventuallyRefused(t, l)
	if len(asked) != 3 || asked[0] != "WAIT" || asked[1] != 2 || asked[2] != int64(1) {
		t.Errorf("the pipeline ends with %v, want WAIT 2 1", asked)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

var errRefused = errors.New("refused by the test")

// eventuallyRefused asks until a millisecond was enough.
func eventuallyRefused(t *testing.T, l locks.Locker) {
	t.Helper()
	for range 10_000 {
		if _, err := l.TryAcquire(t.Context(), "a"); errors.Is(err, errRefused) {
			return
		}
	}
	t.Fatal("a pipeline was never asked")
}

// pipelines answers pipelines by a function, and all else with an empty reply.
type pipelines struct{ answer func([]redis.Cmder) error }

func (*pipelines) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*pipelines) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return nil }
}

func (p *pipelines) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error { return p.answer(cmds) }
}

func TestWaitReplicasNeedsAClientWithPipelines(t *testing.T) {
	if _, err := redislock.New(&stub{}, &redislock.Options{WaitReplicas: 1}); !errors.Is(err, locks.ErrBadOption) {
		t.Errorf("New: %v, want ErrBadOption", err)
	}
}
