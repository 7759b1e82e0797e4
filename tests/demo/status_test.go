package demo_test

import (
	"net"
	"strings"
	"testing"
	"time"
)

func TestStatus1WhenNothingWasShown(t *testing.T) {
	t.Parallel()
	got := run(t, "--json", "--pause=none")
	if got.status != 1 {
		t.Errorf("status %d, want 1", got.status)
	}
	if want := "not shown: with --pause=none nobody writes late"; !strings.Contains(got.stderr, want) {
		t.Errorf("stderr is %q, want %q in it", got.stderr, want)
	}
	if want := `"lost_updates":{"unfenced":0,"fenced":0}`; !strings.Contains(got.stdout, want) {
		t.Errorf("stdout lacks %s:\n%s", want, got.stdout)
	}
}

func TestStatus2ForWrongUsageAndStderrNamesIt(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--lock=consul://h:1", `no lock service "consul"; give memory, redis://`},
		{"--lock=localhost", "no scheme; give memory"},
		{"--lock=localhost:6379", "give redis://localhost:6379, or"},
		{"--lock=u:hunter2@localhost:2181", "give zk://USER:PASSWORD@localhost:2181, or"},
		{"--lock=redis://u:hunter2@h", `"h" is not host:port`},
		{"--lock=redis://u:hunt%er2@h:1", "percent-encode"},
		{"--lock=etcd://u:hunter2@h:1/path", "ends with a path"},
		{"--lock=zk://u:hunter2@h:1,h", `"h" is not host:port`},
		{"--lock=zk://127.0.0.1:1/zookeeper", "ZooKeeper's own"},
		{"--ttl=soon", "--ttl: expected duration"},
		{"--ttl=0", "it must be positive"},
		{"--ttl=-1s", "it must be positive"},
		{"--ttl=1ms", "give 200ms to 1m0s"},
		{"--ttl=1h", "give 200ms to 1m0s"},
		{"--lock=etcd://127.0.0.1:1 --ttl=1500ms", "whole seconds"},
		{"--pause=sometimes", `"stop","block","none"`},
		{"--tty", "unknown flag --tty"},
		{"stray", "unexpected argument stray"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := run(t, strings.Fields(c.args)...)
			if got.status != 2 || got.stdout != "" {
				t.Errorf("status %d, stdout %q; want 2 and nothing", got.status, got.stdout)
			}
			if !strings.Contains(got.stderr, c.want) {
				t.Errorf("stderr is %q, want %q in it", got.stderr, c.want)
			}
			if strings.Contains(got.stderr, "hunt") {
				t.Errorf("stderr shows the password: %q", got.stderr)
			}
		})
	}
}

func TestStatus3WithinSecondsForAServiceThatIsNotThere(t *testing.T) {
	for _, scheme := range []string{"redis", "rediss", "etcd", "etcds", "zk"} {
		for _, kind := range []string{"refuses", "is silent"} {
			t.Run(scheme+" "+kind, func(t *testing.T) {
				t.Parallel()
				l, err := net.Listen("tcp4", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				if kind == "refuses" {
					l.Close()
				}
				address := l.Addr().String()

				began := time.Now()
				got := run(t, "--lock="+scheme+"://user:hunter2@"+address)
				if got.status != 3 || got.stdout != "" {
					t.Errorf("status %d, stdout %q; want 3 and nothing", got.status, got.stdout)
				}
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("it took %v, want seconds", took)
				}
				for _, want := range []string{scheme + "://" + address, "is it running", "--lock=memory"} {
					if !strings.Contains(got.stderr, want) {
						t.Errorf("stderr is %q, want %q in it", got.stderr, want)
					}
				}
				if strings.Contains(got.stderr, "hunter2") {
					t.Errorf("stderr shows the password: %q", got.stderr)
				}
				for line := range strings.Lines(got.stderr) {
					if !strings.HasPrefix(line, "fencedkv-demo: ") || strings.Contains(line, ": remove ") {
						t.Errorf("stderr has the line %q, want only what it is and what to do", line)
					}
				}
				if !strings.HasPrefix(scheme, "redis") || kind != "refuses" {
					return
				}
				for _, want := range []string{"ask the server for its version (INFO): ", "connection refused"} {
					if !strings.Contains(got.stderr, want) {
						t.Errorf("stderr is %q, want %q in it", got.stderr, want)
					}
				}
			})
		}
	}
}
