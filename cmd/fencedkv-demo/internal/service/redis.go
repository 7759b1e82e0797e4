package service

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/locks"
)

var redisServer = kind{
	ttl: time.Second,
	check: func(c Config) error {
		// The parsers' messages would show the password.
		u, err := url.Parse(c.Address)
		if err != nil {
			return errors.New("the address is not understood; percent-encode user and password")
		}
		if err := checkHost(u.Host); err != nil {
			return err
		}
		if _, err := redis.ParseURL(c.Address); err != nil {
			return errors.New("the address is not understood; give redis://user:password@host:port/database")
		}
		return nil
	},
	open: func(c Config, _ *loopback.Client) (locks.Locker, error) {
		logging.Disable() // the client would write to standard error
		return redislock.Dial(c.Address, &redislock.Options{Prefix: c.Namespace, TTL: c.TTL})
	},
	clean: func(ctx context.Context, c Config) error {
		o, err := redis.ParseURL(c.Address)
		if err != nil {
			return errors.New("the address is not understood")
		}
		o.ContextTimeoutEnabled = true
		client := redis.NewClient(o)
		defer func() { _ = client.Close() }()
		for all := client.Scan(ctx, 0, c.Namespace+":*", 1000).Iterator(); ; {
			if !all.Next(ctx) {
				return all.Err()
			}
			if err := client.Unlink(ctx, all.Val()).Err(); err != nil {
				return err
			}
		}
	},
}
