package rivals

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	name    string
	clients int
	open    contestant.Open
}

func key(service, name string) string { return service + "/" + name }

// newField starts the servers of those services and opens all contenders on
// them.
func newField(ctx context.Context, needed map[string]bool) (*field, error) {
	f := &field{contenders: map[string][]contestant.Contender{}}
	for _, service := range slices.Sorted(maps.Keys(needed)) {
		if err := f.add(ctx, service); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", service, err), f.close())
		}
	}
	return f, nil
}

func (f *field) add(ctx context.Context, service string) error {
	entrants, err := f.start(ctx, service)
	if err != nil {
		return err
	}
	for _, e := range entrants {
		for range e.clients {
			c, err := e.open(ctx)
			if err != nil {
				return fmt.Errorf("open %s: %w", e.name, err)
			}
			f.closers = append(f.closers, c.Close)
			k := key(service, e.name)
			f.contenders[k] = append(f.contenders[k], c)
		}
	}
	return nil
}

// start starts the servers of a service and returns who contends on it.
func (f *field) start(ctx context.Context, service string) ([]entrant, error) {
	switch service {
	case "redis":
		addrs, err := f.redis(ctx, 1, nil)
		if err != nil {
			return nil, err
		}
		return []entrant{
			{"ours", contenders, contestant.OursRedis(addrs[0])},
			{"redislock", contenders, contestant.Redislock(addrs[0])},
			{"redsync", contenders, contestant.Redsync(addrs...)},
		}, nil
	case "redlock":
		addrs, err := f.redis(ctx, nodes, &servers.RedisOptions{AppendOnly: true})
		if err != nil {
			return nil, err
		}
		return []entrant{
			{"ours", 1, contestant.OursRedlock(addrs...)},
			{"redsync", 1, contestant.Redsync(addrs...)},
		}, nil
	case "etcd":
		etcd, stop, err := servers.RunEtcd(ctx, &servers.EtcdOptions{Fsync: true})
		if err != nil {
			return nil, err
		}
		f.closers = append(f.closers, stop)
		return []entrant{
			{"ours", contenders, contestant.OursEtcd(etcd.Addr())},
			{"mutex", contenders, contestant.Mutex(etcd.Addr())},
			{"session", 1, contestant.MutexSession(etcd.Addr())},
		}, nil
	case "zk":
		zookeeper, stop, err := servers.RunZooKeeper(ctx, &servers.ZooKeeperOptions{Fsync: true})
		if err != nil {
			return nil, err
		}
		f.closers = append(f.closers, stop)
		return []entrant{
			{"ours", contenders, contestant.OursZooKeeper(zookeeper.Addr())},
			{"lock", contenders, contestant.ZKLock(zookeeper.Addr())},
		}, nil
	}
	return nil, errors.New("no such service")
}

func (f *field) redis(ctx context.Context, n int, opts *servers.RedisOptions) (addrs []string, err error) {
	for range n {
		r, stop, err := servers.RunRedis(ctx, opts)
		if err != nil {
			return nil, err
		}
		f.closers = append(f.closers, stop)
		addrs = append(addrs, r.Addr())
	}
	return addrs, nil
}

// close ends the contenders, then the servers.
func (f *field) close() error {
	var errs []error
	for _, c := range slices.Backward(f.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
