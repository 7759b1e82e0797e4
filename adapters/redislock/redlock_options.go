package redislock

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// RedlockOptions are the settings of a Redlock; nil and zero fields mean the
// defaults. All Redlocks of one set of locks must have the same Prefix and list
// the same servers; the rest may differ.
type RedlockOptions struct {
	// Prefix begins every key and channel: 1 to 64 bytes of letters, digits
	// and "._/:-". The default is "fencedkv".
	Prefix string

	// TTL is how long the servers keep a lock that is not renewed. MinTTL to
	// MaxTTL, cut to milliseconds, by default 15 s.
	TTL time.Duration

	// MaxHold ends renewal that long after the grant; the lock is then lost at
	// its deadline. The default, 0, is no limit.
	MaxHold time.Duration

	// NodeTimeout bounds each request to one server, so that one that hangs
	// costs no more than this. It must be at most a quarter of TTL, because a
	// grant may take two rounds. The default is a twentieth of TTL and at most
	// 500 ms.
	NodeTimeout time.Duration

	// RetryMin bounds the random pause after the first of several failed
	// rounds; the bound doubles up to PollInterval. The default is 20 ms.
	RetryMin time.Duration

	// PollInterval is how long the two longest waiters wait for a message
	// before they ask again; the others ask every three quarters of TTL. It
	// matters only when messages are lost or a woken waiter has died. The
	// default is a quarter of TTL and at most 2 s; it may not exceed TTL.
	PollInterval time.Duration

	// Logger receives warnings; nil is silent.
	Logger hclog.Logger
}

// common are the settings that a Locker has as well.
func (o *RedlockOptions) common() *Options {
	if o == nil {
		return nil
	}
	return &Options{Prefix: o.Prefix, TTL: o.TTL, MaxHold: o.MaxHold, RetryMin: o.RetryMin,
		PollInterval: o.PollInterval, Logger: o.Logger}
}

func (o *RedlockOptions) prefix() string              { return o.common().prefix() }
func (o *RedlockOptions) ttl() time.Duration          { return o.common().ttl() }
func (o *RedlockOptions) maxHold() time.Duration      { return o.common().maxHold() }
func (o *RedlockOptions) retryMin() time.Duration     { return o.common().retryMin() }
func (o *RedlockOptions) pollInterval() time.Duration { return o.common().pollInterval() }
func (o *RedlockOptions) logger() hclog.Logger        { return o.common().logger() }

// idlePollInterval is for the waiters that have others before them.
func (o *RedlockOptions) idlePollInterval() time.Duration {
	return max(o.ttl()*3/4, o.pollInterval())
}

func (o *RedlockOptions) nodeTimeout() time.Duration {
	if o == nil || o.NodeTimeout == 0 {
		return min(o.ttl()/20, 500*time.Millisecond)
	}
	return o.NodeTimeout
}

func (o *RedlockOptions) validate() error {
	if err := o.common().validate(); err != nil || o == nil {
		return err
	}
	if o.NodeTimeout < 0 || o.nodeTimeout() > o.ttl()/4 {
		return badOption(fmt.Errorf("NodeTimeout is %v; use a positive time up to a quarter of TTL, which is %v", o.NodeTimeout, o.ttl()))
	}
	return nil
}

// redlockKeys are the names on each server of one lock: see the package comment.
type redlockKeys struct{ prefix, base string }

func newRedlockKeys(prefix, name string) redlockKeys {
	return redlockKeys{prefix, prefix + ":redlock:{" + encode(name) + "}:"}
}

func (k redlockKeys) lock() string          { return k.base + "lock" }
func (k redlockKeys) count() string         { return k.base + "count" }
func (k redlockKeys) queue() string         { return k.base + "queue" }
func (k redlockKeys) gone(id string) string { return k.base + "gone:" + id }
func (k redlockKeys) set() string           { return k.prefix + ":redlock:set" }
func (k redlockKeys) node() string          { return k.prefix + ":redlock:node" }
func (k redlockKeys) bid() string           { return k.prefix + ":redlock:bid" }
func (k redlockKeys) rest() string          { return k.prefix + ":redlock:rest" }

// wakeChannel begins the channels of the clients of these locks; the rest is the
// client's tag.
func wakeChannel(prefix string) string { return prefix + ":redlock:wake:" }

// redlockIdentity is what a lineage says of a lock: see the package comment.
func redlockIdentity(set, prefix, name string) string {
	return set + ":" + strings.ReplaceAll(prefix, ":", "%3A") + ":" + name
}
