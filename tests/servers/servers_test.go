package servers_test

import (
	"context"
	"errors"
	"net"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// kind is one kind of server and the least of a client to see its data.
type kind struct {
	name  string
	start func(testing.TB) servers.Server // keeps its data over Kill
	put   func(ctx context.Context, addr string) error
	has   func(ctx context.Context, addr string) (bool, error)
}

var kinds = []kind{
	{
		"redis",
		func(t testing.TB) servers.Server {
			return servers.StartRedis(t, &servers.RedisOptions{AppendOnly: true})
		},
		redisPut, redisHas,
	},
	{
		"zookeeper",
		func(t testing.TB) servers.Server { return servers.StartZooKeeper(t, nil) },
		zkPut, zkHas,
	},
	{
		"etcd",
		func(t testing.TB) servers.Server { return servers.StartEtcd(t, nil) },
		etcdPut, etcdHas,
	},
}

func eachKind(t *testing.T, f func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { f(t, k) })
	}
}

const patience = 20 * time.Second

func (k kind) mustPut(t *testing.T, s servers.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := k.put(ctx, s.Addr()); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func (k kind) wantData(t *testing.T, s servers.Server, want bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if got, err := k.has(ctx, s.Addr()); err != nil || got != want {
		t.Errorf("the data is there: %v, %v, want %v", got, err, want)
	}
}

func TestAServerIsReadyWhenItHasStarted(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		s := k.start(t)
		if s.PID() == 0 {
			t.Error("no process")
		}
		k.mustPut(t, s)
		k.wantData(t, s, true)
	})
}

func TestDataSurvivesKillAndStop(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		s := k.start(t)
		k.mustPut(t, s)
		for _, end := range []struct {
			name string
			end  func()
		}{
			{"Kill", func() { s.Kill(t) }},
			{"Stop", func() { s.Stop(t) }},
		} {
			addr, pid := s.Addr(), s.PID()
			end.end()
			if s.PID() != 0 || alive(pid) {
				t.Errorf("after %s the process is still there", end.name)
			}
			if conn, err := net.Dial("tcp", addr); err == nil {
				conn.Close()
				t.Errorf("after %s somebody listens on %s", end.name, addr)
			}
			s.Start(t)
			if got := s.Addr(); got != addr {
				t.Errorf("after %s and Start the address is %s, want %s", end.name, got, addr)
			}
			k.wantData(t, s, true)
		}
		pid := s.PID()
		s.Restart(t)
		if got := s.PID(); got == pid || alive(pid) {
			t.Errorf("after Restart process %d is %d, want another", pid, got)
		}
		k.wantData(t, s, true)
	})
}

func TestStartWaitsForThePort(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		s := k.start(t)
		k.mustPut(t, s)
		s.Kill(t)
		ln, err := net.Listen("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(300*time.Millisecond, func() { ln.Close() })
		s.Start(t)
		k.wantData(t, s, true)
	})
}

func TestStartEmptyLosesTheData(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		s := k.start(t)
		k.mustPut(t, s)
		s.StartEmpty(t) // kills
		k.wantData(t, s, false)
		k.mustPut(t, s)
		s.Kill(t)
		s.StartEmpty(t)
		k.wantData(t, s, false)
	})
}

func TestAPausedServerAnswersNobodyUntilItResumes(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		s := k.start(t)
		k.mustPut(t, s)
		s.Pause(t)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := k.has(ctx, s.Addr())
		var silence net.Error
		if !errors.As(err, &silence) || !silence.Timeout() {
			t.Errorf("a request to a paused server: %v, want a timeout", err)
		}
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatalf("connect to a paused server: %v, want a connection", err)
		}
		conn.Close()
		s.Resume(t)
		k.wantData(t, s, true)

		s.Pause(t)
		pid := s.PID()
		s.Kill(t)
		if alive(pid) {
			t.Error("a paused process survived Kill")
		}
		s.Start(t)
		s.Pause(t)
		s.Stop(t)
		s.Start(t)
		k.wantData(t, s, true)
	})
}

func TestNothingIsLeftWhenTheTestEnds(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	eachKind(t, func(t *testing.T, k kind) {
		var pid int
		t.Run("uses", func(t *testing.T) {
			s := k.start(t)
			k.mustPut(t, s)
			pid = s.PID()
			if !alive(pid) {
				t.Fatalf("process %d does not run", pid)
			}
		})
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
		wantEmptyDir(t, tmp)
	})
}

func wantEmptyDir(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("%s is left in the temporary directory", entry.Name())
	}
}

func TestOneServerIsShared(t *testing.T) {
	for name, shared := range map[string]func(testing.TB) string{
		"redis": servers.SharedRedis, "zookeeper": servers.SharedZooKeeper, "etcd": servers.SharedEtcd,
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := shared(t), shared(t); a != b {
				t.Errorf("two shared servers, %s and %s", a, b)
			}
		})
	}
}

func TestNamespacesDiffer(t *testing.T) {
	a, b := servers.Namespace(t), servers.Namespace(t)
	if a == b {
		t.Errorf("two namespaces are called %q", a)
	}
	t.Run("sub test/ü", func(t *testing.T) {
		if got := servers.Namespace(t); !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(got) {
			t.Errorf("namespace %q, want only letters, digits, hyphens and underscores", got)
		}
	})
}
