// Package servers runs real redis-server, ZooKeeper and etcd processes for
// tests, on free loopback ports and in temporary directories.
//
//	srv := servers.StartRedis(t, nil)
//	client := redis.NewClient(&redis.Options{Addr: srv.Addr()})
//	srv.Pause(t)
//
// A server that a Start function returns is ready: it has answered a request.
// It belongs to the test: t.Cleanup kills it and removes its directory, and
// when the test failed the end of its log is printed. Tests that need no more
// than a namespace of their own share one server per test binary, see
// [SharedRedis]; such a package has func TestMain(m *testing.M) { servers.Main(m) }.
//
// Services of several servers are [StartSentinels], [StartRedisCluster],
// [StartEnsemble] and [StartEtcdCluster]. Each has its Members, which are
// servers as above, and a method that tells which of them leads.
//
// Missing programs are installed where that is possible (see
// `go run ./servers/install`). Where it is not, the test skips with a message
// that begins with [UnavailablePrefix] and says what to install; with the
// environment variable CI=true it fails instead.
//
// # Caveats
//
// Ports are chosen at random below the ephemeral range and kept across
// restarts, but nothing reserves them while the server is down.
//
// On Linux the servers die with the test binary, however it ends. Elsewhere a
// test binary that is killed leaves its servers behind. Its temporary
// directories are removed by the next test binary that starts a server.
package servers
