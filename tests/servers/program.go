package servers

import "context"

// RunRedis is [StartRedis] for a program that is no test. The caller ends the
// server with stop, which also removes its directory.
func RunRedis(ctx context.Context, opts *RedisOptions) (r *Redis, stop func() error, err error) {
	s, err := newRedis(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	return &Redis{s}, s.destroy, nil
}

// RunZooKeeper is [StartZooKeeper] for a program that is no test; see [RunRedis].
func RunZooKeeper(ctx context.Context, opts *ZooKeeperOptions) (z *ZooKeeper, stop func() error, err error) {
	s, err := newZooKeeper(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	return &ZooKeeper{s}, s.destroy, nil
}

// RunEtcd is [StartEtcd] for a program that is no test; see [RunRedis].
func RunEtcd(ctx context.Context, opts *EtcdOptions) (e *Etcd, stop func() error, err error) {
	s, err := newEtcd(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	return &Etcd{s}, s.destroy, nil
}
