package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestRedisRequestsAndRoundTripsAreCounted(t *testing.T) {
	c := proxy.CountRedis(t, servers.SharedRedis(t))
	client := redisClient(t, c.Addr())
	ctx := t.Context()
	key := servers.Namespace(t)
	if err := client.Set(ctx, key, "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Requests(), []string{"SET"}; !slices.Equal(got, want) {
		t.Errorf("requests of a first SET: %v, want %v", got, want)
	}
	if got := c.Setup(); !slices.Contains(got, "HELLO") {
		t.Errorf("setup of a connection: %v, want HELLO in it", got)
	}
	c.Reset()

	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Get(ctx, key)
		p.Incr(ctx, key)
		p.HGetAll(ctx, key+"/none") // a map or an empty array
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Requests(), []string{"GET", "INCR", "HGETALL"}; !slices.Equal(got, want) {
		t.Errorf("requests of a pipeline: %v, want %v", got, want)
	}
	if got := c.RoundTrips(); got != 1 {
		t.Errorf("round trips of a pipeline: %d, want 1", got)
	}

	client.Get(ctx, key)
	if got := c.RoundTrips(); got != 2 {
		t.Errorf("round trips of a pipeline and a GET: %d, want 2", got)
	}
	c.Reset()
	if got := len(c.Requests()) + len(c.Setup()) + c.RoundTrips(); got != 0 {
		t.Errorf("%d things counted after Reset, want none", got)
	}
}

func TestRedisValuesOfAnySizePassUnchanged(t *testing.T) {
	key := servers.Namespace(t)
	c := proxy.CountRedis(t, servers.SharedRedis(t))
	client := redisClient(t, c.Addr())
	for _, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 1 << 20} {
		value := make([]byte, size)
		for i := range value {
			value[i] = byte(i * 7)
		}
		if err := client.Set(t.Context(), key, value, 0).Err(); err != nil {
			t.Fatalf("SET of %d bytes: %v", size, err)
		}
		got, err := client.Get(t.Context(), key).Bytes()
		if err != nil || !slices.Equal(got, value) {
			t.Errorf("GET of %d bytes: %d bytes, %v, want the same", size, len(got), err)
		}
	}
}

func TestRedisReplyIsLostAfterTheCommandWasExecuted(t *testing.T) {
	key := servers.Namespace(t)
	addr := servers.SharedRedis(t)
	c := proxy.CountRedis(t, addr)
	client, direct := redisClient(t, c.Addr()), redisClient(t, addr)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	lost := c.DropReply("INCR")
	if err := client.Get(t.Context(), key).Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("GET before the INCR: %v, want it untouched", err)
	}
	if err := client.Incr(t.Context(), key).Err(); !connectionLost(err) {
		t.Errorf("INCR whose reply is lost: %v, want a lost connection", err)
	}
	waitFor(t, "the loss", lost)
	if got := direct.Get(t.Context(), key).Val(); got != "1" {
		t.Errorf("the server has %q, want it executed once", got)
	}
	if got := client.Incr(t.Context(), key).Val(); got != 2 {
		t.Errorf("the next INCR gave %d, want 2: only one reply is lost", got)
	}
}

func TestRedisRequestIsLostBeforeTheServerSeesIt(t *testing.T) {
	key := servers.Namespace(t)
	addr := servers.SharedRedis(t)
	c := proxy.CountRedis(t, addr)
	client, direct := redisClient(t, c.Addr()), redisClient(t, addr)
	lost := c.DropRequest("INCR")
	if err := client.Incr(t.Context(), key).Err(); !connectionLost(err) {
		t.Errorf("INCR that is lost: %v, want a lost connection", err)
	}
	waitFor(t, "the loss", lost)
	if err := direct.Get(t.Context(), key).Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("the server's GET: %v, want no such key", err)
	}
}

func TestRedisReplyIsHeldUntilReleased(t *testing.T) {
	key := servers.Namespace(t)
	addr := servers.SharedRedis(t)
	c := proxy.CountRedis(t, addr)
	client, direct := redisClient(t, c.Addr()), redisClient(t, addr)
	held, release := c.HoldReply("INCR")
	done := make(chan error, 1)
	go func() { done <- client.Incr(t.Context(), key).Err() }()
	waitFor(t, "the hold", held)
	if got := direct.Get(t.Context(), key).Val(); got != "1" {
		t.Errorf("the server has %q while the reply is held, want 1", got)
	}
	select {
	case err := <-done:
		t.Fatalf("INCR ended with %v while its reply is held", err)
	default:
	}
	release()
	if err := <-done; err != nil {
		t.Errorf("INCR after the release: %v", err)
	}
}

// A push of RESP3 is no reply: it must neither take the place of one nor be lost.
func TestRedisPushIsNotTakenForAReply(t *testing.T) {
	addr := servers.SharedRedis(t)
	key := servers.Namespace(t)
	c := proxy.CountRedis(t, addr)
	conn, err := net.Dial("tcp", c.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(conn)
	command := func(words ...string) {
		t.Helper()
		fmt.Fprintf(conn, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	// lines reads until one is the last that is wanted.
	lines := func(last string) {
		t.Helper()
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("read up to %q: %v", last, err)
			}
			if line == last+"\r\n" {
				return
			}
		}
	}
	command("HELLO", "3")
	command("CLIENT", "TRACKING", "ON")
	lines("+OK")
	command("GET", key)
	lines("_")
	lost := c.DropReply("INCR")
	// Somebody else's write makes the server push "invalidate".
	if err := redisClient(t, addr).Set(t.Context(), key, "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	lines(">2")
	lines("invalidate")
	lines(key)
	command("INCR", key)
	waitFor(t, "the loss", lost)
	if _, err := in.ReadByte(); !connectionLost(err) {
		t.Errorf("after the loss: %v, want a lost connection", err)
	}
}

func TestRedisRequestIsExecutedAfterItsCallerGaveUp(t *testing.T) {
	key := servers.Namespace(t)
	addr := servers.SharedRedis(t)
	c := proxy.CountRedis(t, addr)
	client, direct := redisClient(t, c.Addr()), redisClient(t, addr)
	held, release := c.HoldRequest("INCR")
	err := within(t, brief, func(ctx context.Context) error { return client.Incr(ctx, key).Err() })
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("INCR whose request is held: %v, want a time-out", err)
	}
	waitFor(t, "the hold", held)
	if n := direct.Exists(t.Context(), key).Val(); n != 0 {
		t.Error("the server has executed a request that is held")
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	for deadline := time.Now().Add(20 * time.Second); direct.Get(t.Context(), key).Val() != "1"; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("the key is %q 20 s after the release, want 1", direct.Get(t.Context(), key).Val())
		}
	}
}
