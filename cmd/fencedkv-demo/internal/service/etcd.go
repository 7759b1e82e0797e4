package service

import (
	"context"
	"crypto/tls"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/locks"
)

var etcdCluster = kind{
	ttl: 2 * time.Second, // the least that etcd grants with its default election timeout
	check: func(c Config) error {
		_, _, path, err := c.endpoints()
		if err == nil && path != "" {
			err = errPath
		}
		return err
	},
	open: func(c Config, _ *loopback.Client) (locks.Locker, error) {
		return etcdlock.Dial(c.Address, &etcdlock.Options{Prefix: c.Namespace, TTL: c.TTL})
	},
	clean: func(ctx context.Context, c Config) error {
		hosts, user, _, err := c.endpoints()
		if err != nil {
			return err
		}
		config := clientv3.Config{Context: ctx, DialTimeout: 2 * time.Second, Logger: zap.NewNop()}
		web := "http://"
		if c.scheme() == "etcds" {
			web, config.TLS = "https://", &tls.Config{MinVersion: tls.VersionTLS12}
		}
		for _, host := range hosts {
			config.Endpoints = append(config.Endpoints, web+host)
		}
		if user != nil {
			config.Username = user.Username()
			config.Password, _ = user.Password()
		}
		client, err := clientv3.New(config)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		_, err = client.Delete(ctx, c.Namespace+"/", clientv3.WithPrefix())
		return err
	},
}
