package servers_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/tests/servers"
)

// The tests here run this test binary again, with one of the cases below, to
// see what it prints and leaves.
const caseVariable = "FENCEDKV_SERVERS_CASE"

// TestCase does nothing unless it is run by another test of this file.
func TestCase(t *testing.T) {
	switch os.Getenv(caseVariable) {
	case "fails":
		servers.StartRedis(t, nil)
		servers.SharedRedis(t)
		t.Error("fails on purpose")
	case "shares":
		for name, s := range map[string]string{
			"redis": servers.SharedRedis(t), "zookeeper": servers.SharedZooKeeper(t), "etcd": servers.SharedEtcd(t),
		} {
			fmt.Printf("%s on %s\n", name, s)
		}
	case "hangs":
		for _, k := range kinds {
			fmt.Printf("pid %d\n", k.start(t).PID())
		}
		s := servers.StartRedis(t, nil)
		s.Pause(t)
		fmt.Printf("pid %d\nhangs\n", s.PID())
		select {}
	case "starts":
		servers.StartRedis(t, nil)
	case "bad configuration":
		servers.StartRedis(t, &servers.RedisOptions{Config: []string{"no-such-setting yes"}})
	case "crash":
		s := servers.StartRedis(t, nil)
		p, err := os.FindProcess(s.PID())
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Kill()
		for s.PID() != 0 {
			runtime.Gosched()
		}
	case "killed twice":
		s := servers.StartRedis(t, nil)
		s.Kill(t)
		s.Kill(t)
	}
}

// runCase runs TestCase in a process of its own whose temporary directory must
// be empty afterwards. PATH stays unless env has another.
func runCase(t *testing.T, name string, env ...string) (out string, passed bool) {
	t.Helper()
	tmp := t.TempDir()
	cmd := caseCommand(name, tmp, env...)
	b, err := cmd.CombinedOutput()
	wantEmptyDir(t, tmp)
	return string(b), err == nil
}

func caseCommand(name, tmp string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestCase$", "-test.v")
	cmd.Env = append(os.Environ(), caseVariable+"="+name, "TMPDIR="+tmp)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

func TestAFailedTestShowsTheEndOfTheLog(t *testing.T) {
	out, passed := runCase(t, "fails")
	if passed {
		t.Fatalf("the case passed:\n%s", out)
	}
	for _, want := range []string{"log of redis-server on", "log of the shared redis-server on", "Ready to accept connections"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

func TestSharedServersEndWithTheTestBinary(t *testing.T) {
	out, passed := runCase(t, "shares")
	if !passed {
		t.Fatalf("the case failed:\n%s", out)
	}
	addrs := regexp.MustCompile(`on (127\.0\.0\.1:\d+)`).FindAllStringSubmatch(out, -1)
	if len(addrs) != len(kinds) {
		t.Fatalf("%d servers were shared, want %d:\n%s", len(addrs), len(kinds), out)
	}
	for _, m := range addrs {
		if conn, err := net.Dial("tcp", m[1]); err == nil {
			conn.Close()
			t.Errorf("somebody still listens on %s", m[1])
		}
	}
}

func TestAMissingServerSkipsButFailsInCI(t *testing.T) {
	nowhere := "PATH=" + t.TempDir()
	out, passed := runCase(t, "starts", nowhere, "CI=")
	if !passed || !strings.Contains(out, "--- SKIP") {
		t.Errorf("passed: %v, want a skip:\n%s", passed, out)
	}
	out2, passed := runCase(t, "starts", nowhere, "CI=true")
	if passed || !strings.Contains(out2, "--- FAIL") {
		t.Errorf("passed in CI: %v, want a failure:\n%s", passed, out2)
	}
	for _, out := range []string{out, out2} {
		if !strings.Contains(out, servers.UnavailablePrefix) || !strings.Contains(out, "install redis-server") {
			t.Errorf("the output does not begin with %q and name the remedy:\n%s", servers.UnavailablePrefix, out)
		}
	}
}

func TestWhatGoesWrongIsSaid(t *testing.T) {
	for name, want := range map[string]string{
		"bad configuration": "no-such-setting",
		"crash":             "redis-server ended by itself: signal: killed",
		"killed twice":      "Kill: redis-server on 127.0.0.1:",
	} {
		t.Run(name, func(t *testing.T) {
			out, passed := runCase(t, name)
			if passed || !strings.Contains(out, want) {
				t.Errorf("passed: %v, want a failure that says %q:\n%s", passed, want, out)
			}
		})
	}
}
