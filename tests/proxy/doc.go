// Package proxy stands between a client and a real server: [New] makes the
// network bad (black hole, latency, connections reset), [CountRedis],
// [CountZooKeeper] and [CountEtcd] read the client's requests on the wire, count
// them and lose, hold or cut single ones.
//
//	p := proxy.New(t, srv.Addr())
//	client := redis.NewClient(&redis.Options{Addr: p.Addr()})
//	p.BlackHole(t, proxy.Both)
//
// Proxies can be chained: proxy.New(t, counter.Addr()). Every proxy ends with
// its test.
//
// # Caveats
//
// A counter speaks the plain protocols only, no TLS. Redis and ZooKeeper
// answer in order, etcd per HTTP/2 stream; on that rests which reply belongs
// to which request. A Redis connection in subscribe mode has pushes that look
// like replies: count those of commands on other connections.
package proxy
