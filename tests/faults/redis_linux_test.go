package faults_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func init() { logging.Disable() } // it prints every refused connection

// kept makes a server that does not forget when it is killed, and does not wait for
// the disk.
var kept = &servers.RedisOptions{Config: []string{"appendonly yes", "appendfsync no"}}

func redisClient(t testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	return client
}

// redisRequest is the name of every request of both adapters.
const redisRequest = "EVALSHA"

// startRedis is one server: the table of package redislock's comment.
func startRedis(t testing.TB) *service {
	srv := servers.StartRedis(t, kept)
	client := redisClient(t, srv.Addr())
	space := "faults:" + rand.Text()
	key := func(name, what string) string { return space + ":{" + name + "}:" + what }
	return &service{
		access:  access{redisName, []string{srv.Addr()}, space},
		servers: []servers.Server{srv},
		count:   proxy.CountRedis,
		take:    redisRequest, turn: redisRequest, renew: redisRequest, release: redisRequest,
		releaseUnsure: true,
		has: func(ctx context.Context, name, holder string) (bool, error) {
			grant, err := get(ctx, client, key(name, "lock"))
			return strings.HasSuffix(grant, " "+holder), err
		},
		entries: func(ctx context.Context, name string) (int, error) {
			return redisEntries(ctx, client, key(name, "lock"), key(name, "queue"))
		},
		deleteLast: func(ctx context.Context, name string) error {
			last, err := client.ZPopMax(ctx, key(name, "queue")).Result()
			if err != nil || len(last) == 0 {
				return deleteKey(ctx, client, key(name, "lock"), err)
			}
			return client.ZRem(ctx, key(name, "alive"), last[0].Member).Err()
		},
		loseCounter: func(_ testing.TB, ctx context.Context, name string) error {
			return client.Del(ctx, key(name, "last")).Err()
		},
	}
}

// startRedlock is three servers: the table of the type redislock.Redlock. What is
// done to the service is done to all three.
func startRedlock(t testing.TB) *service {
	s := &service{
		access: access{Service: redlockName, Space: "faults:" + rand.Text()},
		count:  proxy.CountRedis,
		take:   redisRequest, turn: redisRequest, renew: redisRequest, release: redisRequest,
		releaseUnsure: true,
	}
	var clients []*redis.Client
	for _, srv := range servers.StartRedisServers(t, 3, kept) {
		s.servers, s.Addrs = append(s.servers, srv), append(s.Addrs, srv.Addr())
		clients = append(clients, redisClient(t, srv.Addr()))
	}
	const majority = 2
	key := func(name, what string) string { return s.Space + ":redlock:{" + name + "}:" + what }
	each := func(do func(*redis.Client) error) error {
		for _, client := range clients {
			if err := do(client); err != nil {
				return err
			}
		}
		return nil
	}
	s.has = func(ctx context.Context, name, holder string) (bool, error) {
		n := 0
		err := each(func(client *redis.Client) error {
			id, err := get(ctx, client, key(name, "lock"))
			if id == holder {
				n++
			}
			return err
		})
		return len(clients)-n < majority, err
	}
	s.entries = func(ctx context.Context, name string) (most int, err error) {
		err = each(func(client *redis.Client) error {
			n, err := redisEntries(ctx, client, key(name, "lock"), key(name, "queue"))
			most = max(most, n)
			return err
		})
		return most, err
	}
	// A server that was late has nothing of a grant that the others have.
	s.deleteLast = func(ctx context.Context, name string) error {
		deleted := 0
		err := each(func(client *redis.Client) error {
			last, err := client.ZPopMax(ctx, key(name, "queue")).Result()
			if err != nil || len(last) > 0 {
				deleted += len(last)
				return err
			}
			n, err := client.Del(ctx, key(name, "lock")).Result()
			deleted += int(n)
			return err
		})
		if err == nil && deleted == 0 {
			err = fmt.Errorf("no server has an entry of %q to delete", name)
		}
		return err
	}
	s.loseCounter = func(_ testing.TB, ctx context.Context, name string) error {
		return each(func(client *redis.Client) error { return client.Del(ctx, key(name, "count")).Err() })
	}
	return s
}

func get(ctx context.Context, client *redis.Client, key string) (string, error) {
	value, err := client.Get(ctx, key).Result()
	if err == redis.Nil {
		return "", nil
	}
	return value, err
}

func redisEntries(ctx context.Context, client *redis.Client, lock, queue string) (int, error) {
	held, err := client.Exists(ctx, lock).Result()
	if err != nil {
		return 0, err
	}
	waiting, err := client.ZCard(ctx, queue).Result()
	return int(held + waiting), err
}

func deleteKey(ctx context.Context, client *redis.Client, key string, err error) error {
	if err != nil {
		return err
	}
	n, err := client.Del(ctx, key).Result()
	if err == nil && n != 1 {
		err = fmt.Errorf("there is no key %q to delete", key)
	}
	return err
}
