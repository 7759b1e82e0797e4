package service

import (
	"context"
	"errors"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/lockserver"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

var memory = kind{
	ttl:   time.Second,
	check: func(Config) error { return nil },
	open: func(c Config, client *loopback.Client) (locks.Locker, error) {
		if client == nil {
			return nil, errors.New("the resource process is not there")
		}
		return memlock.NewLocker(lockserver.NewBackend(client), &memlock.Options{TTL: c.TTL})
	},
	clean: func(context.Context, Config) error { return nil }, // it ends with its process
}
