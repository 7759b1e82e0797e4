package servers_test

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const testKey = "harness"

func redisPut(ctx context.Context, addr string) error {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer c.Close()
	return c.Set(ctx, testKey, "1", 0).Err()
}

func redisHas(ctx context.Context, addr string) (bool, error) {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer c.Close()
	n, err := c.Exists(ctx, testKey).Result()
	return n == 1, err
}

func zkPut(ctx context.Context, addr string) error {
	return withZK(ctx, addr, func(c *zk.Conn) error {
		_, err := c.Create("/"+testKey, nil, 0, zk.WorldACL(zk.PermAll))
		return err
	})
}

func zkHas(ctx context.Context, addr string) (there bool, err error) {
	err = withZK(ctx, addr, func(c *zk.Conn) error {
		var err error
		there, _, err = c.Exists("/" + testKey)
		return err
	})
	return there, err
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// withZK lends a connection to f, whose calls wait for the session. They know
// no context: Close ends them.
func withZK(ctx context.Context, addr string, f func(*zk.Conn) error) error {
	c, _, err := zk.Connect([]string{addr}, 4*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f(c) }()
	select {
	case err = <-done:
		c.Close()
	case <-ctx.Done():
		c.Close()
		<-done
		err = ctx.Err()
	}
	return err
}

func etcdPut(ctx context.Context, addr string) error {
	return withEtcd(addr, func(c *clientv3.Client) error {
		_, err := c.Put(ctx, testKey, "1")
		return err
	})
}

func etcdHas(ctx context.Context, addr string) (there bool, err error) {
	err = withEtcd(addr, func(c *clientv3.Client) error {
		r, err := c.Get(ctx, testKey)
		there = err == nil && r.Count == 1
		return err
	})
	return there, err
}

func withEtcd(addr string, f func(*clientv3.Client) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}
