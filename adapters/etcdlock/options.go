package etcdlock

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/locks"
)

// The defaults of Options.
const (
	DefaultPrefix = "fencedkv/locks"
	DefaultTTL    = 10 * time.Second

	maxRequestTimeout = 5 * time.Second
)

// Options are the settings of a Locker. Nil, and zero fields, are defaults.
type Options struct {
	// Prefix begins every key, by default DefaultPrefix. A slash at its end is
	// dropped. Lockers exclude each other only if they have the same prefix.
	Prefix string

	// TTL is how long a lock outlives its crashed holder, by default
	// DefaultTTL. etcd counts in whole seconds and grants no less than one and
	// a half election timeouts (2 s with etcd's defaults): another TTL is an
	// error over locks.ErrBadOption, from New or from the first Acquire.
	TTL time.Duration

	// MaxHold ends the renewal of a grant that long after it was given: it is
	// lost at its next deadline. 0 is no limit.
	MaxHold time.Duration

	// RequestTimeout bounds each request, by default TTL, at most 5 s. More
	// than TTL is an error: the lease has run out by then. A renewal has a
	// third of TTL at most.
	RequestTimeout time.Duration

	// TLS is used by Dial for etcds addresses, by default the system's roots.
	TLS *tls.Config

	// Logger receives what the caller need not act on, such as one failed
	// renewal. Nil is silent.
	Logger hclog.Logger
}

func (o *Options) prefix() string {
	if o == nil || o.Prefix == "" {
		return DefaultPrefix
	}
	return strings.TrimRight(o.Prefix, "/")
}

func (o *Options) ttl() time.Duration {
	if o == nil || o.TTL == 0 {
		return DefaultTTL
	}
	return o.TTL
}

func (o *Options) maxHold() time.Duration {
	if o == nil {
		return 0
	}
	return o.MaxHold
}

func (o *Options) requestTimeout() time.Duration {
	if o == nil || o.RequestTimeout == 0 {
		return min(o.ttl(), maxRequestTimeout)
	}
	return o.RequestTimeout
}

func (o *Options) tls() *tls.Config {
	if o == nil || o.TLS == nil {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o.TLS
}

func (o *Options) logger() hclog.Logger {
	if o == nil || o.Logger == nil {
		return hclog.NewNullLogger()
	}
	return o.Logger
}

func (o *Options) check(op string) error {
	bad := func(format string, args ...any) error {
		return &locks.Error{Op: op, Kind: locks.ErrBadOption, Err: fmt.Errorf(format, args...)}
	}
	switch ttl := o.ttl(); {
	case o.prefix() == "":
		return bad("Prefix %q names no place for the locks; give for example %q", o.Prefix, DefaultPrefix)
	case ttl < time.Second || ttl%time.Second != 0:
		return bad("TTL is %v, but etcd counts in whole seconds; give 1s or more", ttl)
	case o.maxHold() < 0:
		return bad("MaxHold is %v; give a positive time, or 0 for no limit", o.maxHold())
	case o.requestTimeout() < 0:
		return bad("RequestTimeout is %v; give a positive time", o.requestTimeout())
	case o.requestTimeout() > ttl:
		return bad("RequestTimeout is %v, but after TTL, %v, the lease has run out; give no more than that", o.requestTimeout(), ttl)
	}
	return nil
}
