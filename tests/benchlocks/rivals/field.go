package rivals

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fencedkv/fencedkv/tests/benchlocks/contestant"
	"github.com/fencedkv/fencedkv/tests/servers"
)

const nodes = 5 // of Redlock

// field is the servers and everybody who contends on them.
type field struct {
	contenders map[string][]contestant.Contender // by service and contestant
	closers    []func() error
}

// entrant is one contestant on one service.
type entrant struct {
	service, name string
	clients       int
	open          contestant.Open
}

func (e entrant) key() string { return key(e.service, e.name) }

func key(service, name string) string { return service + "/" + name }

// newField starts the servers and opens all contenders.
func newField(ctx context.Context) (*field, error) {
	f := &field{contenders: map[string][]contestant.Contender{}}
	entrants, err := f.entrants(ctx)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	for _, e := range entrants {
		for range e.clients {
			c, err := e.open(ctx)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("open %s: %w", e.key(), err), f.close())
			}
			f.closers = append(f.closers, c.Close)
			f.contenders[e.key()] = append(f.contenders[e.key()], c)
		}
	}
	return f, nil
}

func (f *field) entrants(ctx context.Context) ([]entrant, error) {
	redis, err := f.redis(ctx, nil)
	if err != nil {
		return nil, err
	}
	var set []string
	for range nodes {
		addr, err := f.redis(ctx, &servers.RedisOptions{AppendOnly: true})
		if err != nil {
			return nil, err
		}
		set = append(set, addr)
	}
	etcd, stop, err := servers.RunEtcd(ctx, &servers.EtcdOptions{Fsync: true})
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, stop)
	zookeeper, stop, err := servers.RunZooKeeper(ctx, &servers.ZooKeeperOptions{Fsync: true})
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, stop)
	return []entrant{
		{"redis", "ours", contenders, contestant.OursRedis(redis)},
		{"redis", "redislock", contenders, contestant.Redislock(redis)},
		{"redis", "redsync", contenders, contestant.Redsync(redis)},
		{"redlock", "redsync", 1, contestant.Redsync(set...)},
		{"etcd", "ours", contenders, contestant.OursEtcd(etcd.Addr())},
		{"etcd", "mutex", contenders, contestant.Mutex(etcd.Addr())},
		{"etcd", "session", 1, contestant.MutexSession(etcd.Addr())},
		{"zk", "ours", contenders, contestant.OursZooKeeper(zookeeper.Addr())},
		{"zk", "lock", contenders, contestant.ZKLock(zookeeper.Addr())},
	}, nil
}

func (f *field) redis(ctx context.Context, opts *servers.RedisOptions) (addr string, err error) {
	r, stop, err := servers.RunRedis(ctx, opts)
	if err != nil {
		return "", err
	}
	f.closers = append(f.closers, stop)
	return r.Addr(), nil
}

// close ends the contenders, then the servers.
func (f *field) close() error {
	var errs []error
	for _, c := range slices.Backward(f.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
