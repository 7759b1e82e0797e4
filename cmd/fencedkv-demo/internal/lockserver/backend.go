package lockserver

import (
	"context"
	"errors"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// Backend carries the calls of a memlock.Locker to the process that serves them.
type Backend struct{ client *loopback.Client }

var _ memlock.Backend = (*Backend)(nil)

// NewBackend returns a Backend that calls through client.
func NewBackend(client *loopback.Client) *Backend { return &Backend{client} }

// Take implements memlock.Backend.
func (b *Backend) Take(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
	var g granted
	err := b.call(ctx, "acquire", takePath, a, &g)
	return g.Token, err
}

// Wait implements memlock.Backend.
func (b *Backend) Wait(ctx context.Context, name, id string) error {
	return b.call(ctx, "wait", waitPath, memlock.Attempt{Name: name, ID: id}, nil)
}

// Renew implements memlock.Backend.
func (b *Backend) Renew(ctx context.Context, name, id string, ttl time.Duration) error {
	return b.call(ctx, "renew", renewPath, memlock.Attempt{Name: name, ID: id, TTL: ttl}, nil)
}

// Release implements memlock.Backend.
func (b *Backend) Release(ctx context.Context, name, id string) error {
	return b.call(ctx, "release", releasePath, memlock.Attempt{Name: name, ID: id}, nil)
}

func (b *Backend) call(ctx context.Context, op, path string, a memlock.Attempt, reply any) error {
	err := b.client.Call(ctx, path, a, reply)
	if status := (*loopback.StatusError)(nil); errors.As(err, &status) && kinds[status.Status] != nil {
		return &locks.Error{Op: op, Name: a.Name, Kind: kinds[status.Status], Err: err}
	}
	return err
}
