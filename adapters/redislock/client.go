package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
)

// Client is what a Locker needs of a connection to Redis. *redis.Client (also
// the one that redis.NewFailoverClient makes for Sentinel), *redis.ClusterClient
// and redis.UniversalClient have it. A *redis.Ring is refused by New: when one of
// its servers does not answer, the same lock is free on another.
//
// Set ContextTimeoutEnabled in the client's options. Without it a request that
// gets no answer keeps its connection until the client's ReadTimeout is over,
// its retries included. No call of the Locker waits for that, but Close does.
// Set DialerRetries to 1 as well. With the default a refused connection takes
// half a second and more, and a shorter Options.RequestTimeout then tells "no
// reply" and not the reason. Dial sets both.
type Client interface {
	redis.Scripter
	Info(ctx context.Context, section ...string) *redis.StringCmd
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

var (
	_ Client = (*redis.Client)(nil)
	_ Client = (*redis.ClusterClient)(nil)
	_ Client = redis.UniversalClient(nil)
	_ router = (*redis.ClusterClient)(nil)
)

// pipeliner is needed for Options.WaitReplicas: WAIT counts the writes of its
// own connection, so it must follow the script on the same one.
type pipeliner interface {
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// cluster finds the node that has a key.
type cluster interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
}

// isNil reports whether there is no client, or a nil pointer to one.
func isNil(c Client) bool {
	v := reflect.ValueOf(c)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// router is a client that remembers which server has which keys. It reloads
// that when a server sends it elsewhere, which a dead one does not, and else
// once a minute, when the leases there have long run out.
type router interface {
	ReloadState(ctx context.Context)
}

// keepsDeadlines reports whether a request of the client ends with the deadline of
// its context.
func keepsDeadlines(c Client) bool {
	switch c := c.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	}
	return false
}

// reroute is for a request that has failed. The client reloads in the
// background, a few times a second at most.
func (l *Locker) reroute(ctx context.Context) {
	if c, ok := l.client.(router); ok {
		c.ReloadState(ctx)
	}
}

// Dial returns a Locker with a client of its own on the server at address, such
// as "redis://user:password@host:6379/0" or "rediss://host" for TLS with the
// system's certificates. It makes no connection; the first Acquire does. Close
// closes the client. For Sentinel, Cluster or other certificates make the client
// and use New.
//
// The error is over locks.ErrBadOption and never shows the address, which may
// contain a password.
func Dial(address string, o *Options) (*Locker, error) {
	if address == "" {
		return nil, badOption(errors.New("the address is empty; use redis://host:port"))
	}
	opts, err := redis.ParseURL(address)
	if err != nil {
		// The parser's message may quote a part of the address.
		return nil, badOption(errors.New("the address is not understood; use redis://user:password@host:port/database " +
			"or rediss://..., with special characters of the password percent-encoded"))
	}
	if err := checkPort(opts); err != nil {
		return nil, badOption(err)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	opts.ContextTimeoutEnabled = true
	// Acquire asks again by itself and TryAcquire is to tell soon. One repetition
	// is for a pooled connection that the server has closed.
	opts.DialerRetries, opts.MaxRetries = 1, 1
	client := redis.NewClient(opts)
	l, err := New(client, o)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	l.closeClient = client.Close
	return l, nil
}

// checkPort refuses a port that no connection could ever be made to.
func checkPort(opts *redis.Options) error {
	if opts.Network == "unix" {
		return nil
	}
	_, port, err := net.SplitHostPort(opts.Addr)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
		return errors.New("the port of the address is not a number from 1 to 65535; use redis://host:port")
	}
	return nil
}

// node returns what sends the pipelines for the keys of one lock.
func (l *Locker) node(ctx context.Context, k keys) (pipeliner, error) {
	if c, ok := l.client.(cluster); ok {
		return c.MasterForKey(ctx, k.lock())
	}
	if p, ok := l.client.(pipeliner); ok {
		return p, nil
	}
	return nil, &locks.Error{Op: "wait for replicas", Kind: locks.ErrBadOption,
		Err: fmt.Errorf("a %T has no pipelines", l.client)}
}
