package servers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode"
	"unicode/utf8"
)

// shared is one server for all tests of a binary, started by the first that
// asks for it.
type shared struct {
	start func(context.Context) (*instance, error)

	once sync.Once
	s    *instance
	err  error
}

var (
	mainRuns bool // set before any test runs

	sharedRedis     = shared{start: func(ctx context.Context) (*instance, error) { return newRedis(ctx, nil) }}
	sharedZooKeeper = shared{start: func(ctx context.Context) (*instance, error) { return newZooKeeper(ctx, nil) }}
	sharedEtcd      = shared{start: func(ctx context.Context) (*instance, error) { return newEtcd(ctx, nil) }}
)

// Main runs the tests and then ends the shared servers. A package that uses
// one has
//
//	func TestMain(m *testing.M) { servers.Main(m) }
func Main(m *testing.M) {
	mainRuns = true
	code := m.Run()
	for _, sh := range []*shared{&sharedRedis, &sharedZooKeeper, &sharedEtcd} {
		if sh.s == nil {
			continue
		}
		if err := sh.s.destroy(); err != nil {
			fmt.Fprintf(os.Stderr, "servers: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// SharedRedis is the address of a redis-server with default options that all
// tests of this binary share. A test keeps to keys of its own, see [Namespace],
// and does nothing that others would notice. May be called concurrently.
func SharedRedis(t testing.TB) string {
	t.Helper()
	return sharedRedis.addr(t, "SharedRedis")
}

// SharedZooKeeper is the address of a ZooKeeper server, as [SharedRedis].
func SharedZooKeeper(t testing.TB) string {
	t.Helper()
	return sharedZooKeeper.addr(t, "SharedZooKeeper")
}

// SharedEtcd is the address of an etcd server, as [SharedRedis].
func SharedEtcd(t testing.TB) string {
	t.Helper()
	return sharedEtcd.addr(t, "SharedEtcd")
}

var namespaces atomic.Int64

// Namespace is a name for what the test keeps on a shared server, made of
// letters, digits, hyphens and underscores: no other test of this binary has
// the same, nor has this one when it runs again (-count). May be called concurrently.
func Namespace(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%s-%d", name, namespaces.Add(1))
}

func (sh *shared) addr(t testing.TB, caller string) string {
	t.Helper()
	if !mainRuns {
		t.Fatalf("servers: %s needs func TestMain(m *testing.M) { servers.Main(m) } in the package", caller)
	}
	// Not the test's context: the server outlives the test.
	sh.once.Do(func() { sh.s, sh.err = sh.start(context.Background()) })
	if sh.err != nil {
		unavailable(t, sh.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("servers: log of the shared %s on %s:\n%s", sh.s.prog.name(), sh.s.Addr(), tail(sh.s.logFile()))
		}
	})
	return sh.s.Addr()
}
