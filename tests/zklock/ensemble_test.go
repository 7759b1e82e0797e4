package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/internal/provision"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

const members = 3

// ensemble is three servers. Each reaches the others through proxies of its
// own, so that one follower can be cut off from its leader, and from nobody
// else.
type ensemble struct {
	client [members]string
	link   [members][members]*proxy.Proxy // from, to
}

func startEnsemble(t *testing.T) *ensemble {
	t.Helper()
	java, err := provision.ZooKeeper(t.Context(), nil)
	if errors.Is(err, provision.ErrUnavailable) && os.Getenv("CI") != "true" {
		t.Skipf("%s%v", servers.UnavailablePrefix, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	e := &ensemble{}
	var peer, election [members]int
	for i := range members {
		e.client[i] = local(servers.FreePort(t))
		peer[i], election[i] = servers.FreePort(t), servers.FreePort(t)
	}
	for i := range members {
		dir := t.TempDir()
		lines := []string{
			"dataDir=" + dir, "clientPortAddress=127.0.0.1", "clientPort=" + port(e.client[i]),
			"tickTime=200", "minSessionTimeout=400", "initLimit=50", "syncLimit=25",
			"admin.enableServer=false", "4lw.commands.whitelist=srvr",
		}
		for j := range members {
			at := local(peer[j])
			if i != j {
				e.link[i][j] = proxy.New(t, at)
				at = e.link[i][j].Addr()
			}
			lines = append(lines, fmt.Sprintf("server.%d=%s:%d", j+1, at, election[j]))
		}
		write(t, filepath.Join(dir, "myid"), fmt.Sprint(i+1))
		config := filepath.Join(dir, "zoo.cfg")
		write(t, config, strings.Join(lines, "\n"))
		run(t, java.Path, "-cp", java.ClassPath, "-Xms32m", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true", "-Dzookeeper.admin.enableServer=false",
			"-Dzookeeper.preAllocSize=1024", "-Dzookeeper.forceSync=no",
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	}
	return e
}

// run runs a program until the test ends, or the test binary does, however
// that happens: a shell waits for the end of its input and then kills it.
func run(t *testing.T, program ...string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", `"$@" & cat >/dev/null; kill -9 $!; wait`, "sh"}, program...)...)
	var log logged
	cmd.Stdout, cmd.Stderr = &log, &log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
		if text := log.text.String(); t.Failed() {
			t.Logf("a server's log ends:\n%s", text[max(0, len(text)-2000):])
		}
	})
}

// roles waits until all are there, and tells the leader and a follower.
func (e *ensemble) roles(t *testing.T) (leader, follower int) {
	t.Helper()
	bounded.Eventually(t, "a leader and two followers", func() bool {
		leaders, followers := 0, 0
		for i, addr := range e.client {
			switch mode(addr) {
			case "leader":
				leader = i
				leaders++
			case "follower":
				follower = i
				followers++
			}
		}
		return leaders == 1 && followers == members-1
	})
	return leader, follower
}

// mode is what a server says it is; empty if it does not serve.
func mode(addr string) string {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "srvr")
	answer, _ := io.ReadAll(conn)
	_, rest, _ := strings.Cut(string(answer), "Mode: ")
	m, _, _ := strings.Cut(rest, "\n")
	return m
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
