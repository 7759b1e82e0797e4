package proxy_test

import (
	"net"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestNoGoroutineOutlivesTheTest(t *testing.T) {
	addr := servers.SharedRedis(t)
	t.Run("uses", func(t *testing.T) {
		c := proxy.CountRedis(t, addr)
		p := proxy.New(t, c.Addr())
		held, _ := c.HoldReply("PING")
		talk := func() {
			conn, err := net.Dial("tcp", p.Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
				t.Fatal(err)
			}
		}
		talk() // its reply is held
		waitFor(t, "the hold", held)
		p.Latency(t, time.Hour)
		p.BlackHole(t, proxy.Both)
		talk() // and this one gets nowhere
	})
	ours := regexp.MustCompile(`created by .*tests/proxy\..*`)
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left := ours.FindAllString(string(stacks), -1)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left:\n%s", len(left), stacks)
		}
	}
}
