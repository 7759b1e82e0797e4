package contestant

import (
	"context"
	"errors"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/adapters/redislock"
)

func newRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
}

// OursRedis is adapters/redislock on one server.
func OursRedis(addr string) Open {
	return func(context.Context) (Contender, error) {
		client := newRedis(addr)
		l, err := redislock.New(client, &redislock.Options{TTL: leaseTime})
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		return &ours{l, client.Close}, nil
	}
}

// OursRedlock is Redlock of adapters/redislock.
func OursRedlock(addrs ...string) Open {
	return func(context.Context) (Contender, error) {
		var clients []redislock.Client
		var closers closers
		for _, addr := range addrs {
			client := newRedis(addr)
			clients = append(clients, client)
			closers = append(closers, client.Close)
		}
		l, err := redislock.NewRedlock(clients, &redislock.RedlockOptions{TTL: leaseTime})
		if err != nil {
			return nil, errors.Join(err, closers.close())
		}
		return &ours{l, closers.close}, nil
	}
}

// closers end several things.
type closers []func() error

func (c closers) close() error {
	var errs []error
	for _, f := range c {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Redislock is github.com/bsm/redislock with its linear back-off of 10 ms.
func Redislock(addr string) Open {
	return func(context.Context) (Contender, error) {
		client := newRedis(addr)
		return &bsmLock{bsm.New(client), client}, nil
	}
}

type bsmLock struct {
	locker *bsm.Client
	client *redis.Client
}

func (b *bsmLock) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	lock, err := b.locker.Obtain(ctx, "bsm:"+name, leaseTime, &bsm.Options{RetryStrategy: bsm.LinearBackoff(10 * time.Millisecond)})
	if err != nil {
		return nil, err
	}
	return lock.Release, nil
}

func (b *bsmLock) Close() error { return b.client.Close() }

// Redsync is github.com/go-redsync/redsync with its defaults, but for the lease
// time.
func Redsync(addrs ...string) Open {
	return func(context.Context) (Contender, error) {
		r := &redsyncLock{}
		var pools []redsyncredis.Pool
		for _, addr := range addrs {
			client := newRedis(addr)
			r.closers = append(r.closers, client.Close)
			pools = append(pools, goredis.NewPool(client))
		}
		r.locker = redsync.New(pools...)
		return r, nil
	}
}

type redsyncLock struct {
	locker  *redsync.Redsync
	closers closers
}

// Lock goes on where the library gives up, after 32 tries.
func (r *redsyncLock) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	mutex := r.locker.NewMutex("redsync:"+name, redsync.WithExpiry(leaseTime))
	for {
		err := mutex.LockContext(ctx)
		if taken := (*redsync.ErrTaken)(nil); errors.As(err, &taken) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			ok, err := mutex.UnlockContext(ctx)
			if err == nil && !ok {
				err = errors.New("redsync: the lock was lost")
			}
			return err
		}, nil
	}
}

func (r *redsyncLock) Close() error { return r.closers.close() }
