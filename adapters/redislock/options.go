package redislock

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/locks"
)

// Limits of Options.
const (
	MinTTL    = 10 * time.Millisecond
	MaxTTL    = 24 * time.Hour // a number is remembered for a day
	maxPrefix = 64
)

// Options are the settings of a Locker; nil and zero fields mean the defaults.
// All Lockers of one set of locks must have the same Prefix; the rest may
// differ.
type Options struct {
	// Prefix begins every key and channel: 1 to 64 bytes of letters, digits
	// and "._/:-". The default is "fencedkv".
	Prefix string

	// TTL is how long the server keeps a lock that is not renewed, and with
	// that how long a crashed holder keeps the others out. MinTTL to MaxTTL,
	// cut to milliseconds, by default 15 s.
	TTL time.Duration

	// MaxHold ends renewal that long after the grant; the lock is then lost at
	// its deadline. The default, 0, is no limit.
	MaxHold time.Duration

	// RequestTimeout bounds each request, and with that TryAcquire, but for 100 ms
	// in which an attempt that fails takes back what the server may have of it. It must be
	// shorter than TTL. The default is a third of TTL and at most 3 s.
	RequestTimeout time.Duration

	// RetryMin is the pause after the first of several failed requests; it
	// doubles up to PollInterval. The default is 20 ms.
	RetryMin time.Duration

	// PollInterval is how long the two longest waiters wait for a message
	// before they ask again; the others ask every three quarters of TTL. It
	// matters only when messages are lost. The default is a quarter of TTL and
	// at most 2 s; it may not exceed TTL.
	PollInterval time.Duration

	// ClaimTime is how long a lock that this Locker frees stays reserved for the
	// first waiter, and with that what a dead waiter costs the others. It must
	// be well above a round trip of the slowest client, which else loses its
	// turns. 1 ms up to TTL, cut to milliseconds, by default a quarter of TTL and
	// at most 100 ms.
	ClaimTime time.Duration

	// WaitReplicas is how many replicas must confirm a grant (WAIT) before
	// Acquire returns it. It makes a lost grant after a failover less likely,
	// not impossible. The client must be a *redis.Client or
	// *redis.ClusterClient, or have their methods. The default is 0.
	WaitReplicas int

	// Logger receives warnings; nil is silent. go-redis itself prints failed dials
	// to standard error, for the whole process; redis.SetLogger changes that.
	Logger hclog.Logger
}

func (o *Options) prefix() string {
	if o == nil || o.Prefix == "" {
		return "fencedkv"
	}
	return o.Prefix
}

func (o *Options) ttl() time.Duration {
	if o == nil || o.TTL == 0 {
		return 15 * time.Second
	}
	return o.TTL.Truncate(time.Millisecond)
}

func (o *Options) maxHold() time.Duration {
	if o == nil {
		return 0
	}
	return o.MaxHold
}

func (o *Options) requestTimeout() time.Duration {
	if o == nil || o.RequestTimeout == 0 {
		return min(o.ttl()/3, 3*time.Second)
	}
	return o.RequestTimeout
}

func (o *Options) retryMin() time.Duration {
	if o == nil || o.RetryMin == 0 {
		return 20 * time.Millisecond
	}
	return o.RetryMin
}

func (o *Options) pollInterval() time.Duration {
	if o == nil || o.PollInterval == 0 {
		return min(o.ttl()/4, 2*time.Second)
	}
	return o.PollInterval
}

// idlePollInterval is for the waiters that have others before them.
func (o *Options) idlePollInterval() time.Duration {
	return max(o.ttl()*3/4, o.pollInterval())
}

// patience is how long the server counts a waiter that does not ask again.
func (o *Options) patience() time.Duration { return 2 * o.ttl() }

func (o *Options) claimTime() time.Duration {
	if o == nil || o.ClaimTime == 0 {
		return min(o.ttl()/4, 100*time.Millisecond).Truncate(time.Millisecond)
	}
	return o.ClaimTime.Truncate(time.Millisecond)
}

func (o *Options) waitReplicas() int {
	if o == nil {
		return 0
	}
	return o.WaitReplicas
}

func (o *Options) logger() hclog.Logger {
	if o == nil || o.Logger == nil {
		return hclog.NewNullLogger()
	}
	return o.Logger
}

func (o *Options) validate() error {
	switch {
	case o == nil:
		return nil
	case len(o.Prefix) > maxPrefix || strings.ContainsFunc(o.Prefix, func(r rune) bool { return !plain(r) }):
		return badOption(fmt.Errorf("the Prefix is %q; use at most %d letters, digits and %q", o.Prefix, maxPrefix, "._/:-"))
	case o.TTL != 0 && (o.TTL < MinTTL || o.TTL > MaxTTL):
		return badOption(fmt.Errorf("TTL is %v; use %v to %v", o.TTL, MinTTL, MaxTTL))
	case o.MaxHold < 0:
		return badOption(fmt.Errorf("MaxHold is %v; use a positive time, or 0 for no limit", o.MaxHold))
	case o.RequestTimeout < 0 || o.requestTimeout() >= o.ttl():
		return badOption(fmt.Errorf("RequestTimeout is %v; use a positive time below TTL, which is %v", o.RequestTimeout, o.ttl()))
	case o.RetryMin < 0:
		return badOption(fmt.Errorf("RetryMin is %v; use a positive time", o.RetryMin))
	case o.PollInterval < 0 || o.pollInterval() > o.ttl():
		return badOption(fmt.Errorf("PollInterval is %v; use a positive time up to TTL, which is %v", o.PollInterval, o.ttl()))
	case o.ClaimTime != 0 && (o.ClaimTime < time.Millisecond || o.ClaimTime > o.ttl()):
		return badOption(fmt.Errorf("ClaimTime is %v; use 1ms up to TTL, which is %v", o.ClaimTime, o.ttl()))
	case o.WaitReplicas < 0:
		return badOption(fmt.Errorf("WaitReplicas is %d; use 0 or a number of replicas", o.WaitReplicas))
	}
	return nil
}

func badOption(err error) error {
	return &locks.Error{Op: "redislock: options", Kind: locks.ErrBadOption, Err: err}
}
