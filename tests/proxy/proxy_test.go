package proxy_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestBlackHoleIsSilentAndHealDeliversWhatWasHeld(t *testing.T) {
	addr := servers.SharedRedis(t)
	for _, d := range []proxy.Direction{proxy.Both, proxy.Upstream, proxy.Downstream} {
		t.Run(string(d), func(t *testing.T) {
			p := proxy.New(t, addr)
			client, direct := redisClient(t, p.Addr()), redisClient(t, addr)
			key := servers.Namespace(t)
			if err := client.Set(t.Context(), key, "before", 0).Err(); err != nil {
				t.Fatalf("through the proxy: %v", err)
			}
			p.BlackHole(t, d)
			set := make(chan error, 1)
			go func() { set <- client.Set(t.Context(), key, "held", 0).Err() }()
			select {
			case err := <-set:
				t.Fatalf("SET in a black hole ended with %v, want silence", err)
			case <-time.After(brief):
			}
			want := "before"
			if d == proxy.Downstream {
				want = "held" // the request got through, its reply did not
			}
			if got := direct.Get(t.Context(), key).Val(); got != want {
				t.Errorf("the server has %q in the black hole, want %q", got, want)
			}
			p.Heal(t)
			if err := <-set; err != nil {
				t.Errorf("SET after Heal: %v, want its late reply", err)
			}
			if got := direct.Get(t.Context(), key).Val(); got != "held" {
				t.Errorf("the server has %q after Heal, want %q", got, "held")
			}
		})
	}
}

func TestNewConnectionsInABlackHoleAreOpenAndSilent(t *testing.T) {
	p := proxy.New(t, servers.SharedRedis(t))
	p.BlackHole(t, proxy.Both)
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatalf("connect in a black hole: %v, want a connection", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatalf("write in a black hole: %v", err)
	}
	reply := make([]byte, 16)
	_ = conn.SetReadDeadline(time.Now().Add(brief))
	if n, err := conn.Read(reply); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Fatalf("read in a black hole: %q, %v, want a timeout", reply[:n], err)
	}
	p.Heal(t)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, err := conn.Read(reply)
	if err != nil || string(reply[:n]) != "+PONG\r\n" {
		t.Errorf("read after Heal: %q, %v, want PONG", reply[:n], err)
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestARequestHeldBackArrivesAfterItsSenderHasGone(t *testing.T) {
	key := servers.Namespace(t)
	addr := servers.SharedRedis(t)
	p := proxy.New(t, addr)
	client, direct := redisClient(t, p.Addr()), redisClient(t, addr)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p.BlackHole(t, proxy.Both)
	err := within(t, brief, func(ctx context.Context) error {
		return client.RPush(ctx, key, "late").Err()
	})
	if err == nil {
		t.Fatal("RPUSH in a black hole succeeded")
	}
	client.Close()
	p.Heal(t)
	// BLPOP waits on the server for the late write.
	got, err := direct.BLPop(t.Context(), 20*time.Second, key).Result()
	if err != nil || got[1] != "late" {
		t.Errorf("the late request left %v, %v, want it executed", got, err)
	}
}

func TestResetIsSeenByTheClient(t *testing.T) {
	p := proxy.New(t, servers.SharedRedis(t))
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reply := make([]byte, 16)
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(reply); err != nil {
		t.Fatal(err)
	}
	p.Reset(t)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Read(reply); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read after Reset: %v, want connection reset", err)
	}
	if err := redisClient(t, p.Addr()).Ping(t.Context()).Err(); err != nil {
		t.Errorf("a new connection after Reset: %v", err)
	}
}

func TestLatencyDelaysReplies(t *testing.T) {
	p := proxy.New(t, servers.SharedRedis(t))
	client := redisClient(t, p.Addr())
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	const delay = 150 * time.Millisecond
	p.Latency(t, delay)
	begin := time.Now()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < delay {
		t.Errorf("PING took %v, want at least %v", took, delay)
	}
}

func TestAServerThatIsDownRefusesThroughTheProxyToo(t *testing.T) {
	srv := servers.StartRedis(t, nil)
	p := proxy.New(t, srv.Addr())
	client := redisClient(t, p.Addr())
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	srv.Kill(t)
	if err := client.Ping(t.Context()).Err(); !connectionLost(err) {
		t.Errorf("PING of a killed server: %v, want a lost connection", err)
	}
	srv.Start(t)
	if err := redisClient(t, p.Addr()).Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING of the server started again: %v", err)
	}
}
