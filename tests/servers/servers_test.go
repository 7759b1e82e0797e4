package servers_test

import (
	"testing"

	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

func TestSmoke(t *testing.T) {
	for name, start := range map[string]func(testing.TB) servers.Server{
		"redis":     func(t testing.TB) servers.Server { return servers.StartRedis(t, nil) },
		"zookeeper": func(t testing.TB) servers.Server { return servers.StartZooKeeper(t, nil) },
		"etcd":      func(t testing.TB) servers.Server { return servers.StartEtcd(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.Restart(t)
			s.Pause(t)
			s.Resume(t)
			s.Stop(t)
			s.StartEmpty(t)
		})
	}
}
