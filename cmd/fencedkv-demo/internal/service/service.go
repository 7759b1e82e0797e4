// Package service chooses the lock service by its address, and takes away what
// the demonstration leaves on it.
//
// Each run keeps to a random namespace of its own on the service. A run that is
// killed by force leaves that namespace behind; its locks run out by themselves.
package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/locks"
)

// Config says how to reach a lock service. Address may contain a password.
type Config struct {
	Address   string        `json:"address"`
	TTL       time.Duration `json:"ttl"`
	Namespace string        `json:"namespace"`
}

// New reads an address and a lease time, 0 for what suits the service. Its
// errors are over ErrUsage and never show a password.
func New(address string, ttl time.Duration) (Config, error) {
	c := Config{Address: address, TTL: ttl, Namespace: "fencedkv-demo-" + strings.ToLower(rand.Text()[:12])}
	k, err := c.kind()
	if err != nil {
		return Config{}, err
	}
	if err := k.check(c); err != nil {
		return Config{}, usage(c, err)
	}
	if ttl == 0 {
		c.TTL = k.ttl
	}
	if c.TTL < MinTTL || c.TTL > MaxTTL {
		return Config{}, fmt.Errorf("%w: --ttl=%v: give %v to %v; the demonstration lasts about twice as long", ErrUsage, c.TTL, MinTTL, MaxTTL)
	}
	return c, nil
}

// The least and the longest lease time. In less than MinTTL a busy machine
// might not get from the acquisition to the pause.
const (
	MinTTL = 200 * time.Millisecond
	MaxTTL = time.Minute
)

// kind is one kind of service.
type kind struct {
	ttl   time.Duration // the default: short, and kept by the service's own defaults
	check func(Config) error
	open  func(Config, *loopback.Client) (locks.Locker, error)
	// clean removes the namespace.
	clean func(context.Context, Config) error
}

var kinds = map[string]kind{
	"memory": memory,
	"redis":  redisServer,
	"rediss": redisServer,
	"etcd":   etcdCluster,
	"etcds":  etcdCluster,
	"zk":     zooKeeper,
}

// scheme is what stands before "://", or memory.
func (c Config) scheme() string {
	scheme, _, found := strings.Cut(c.Address, "://")
	if !found && scheme != "memory" {
		return ""
	}
	return scheme
}

func (c Config) kind() (kind, error) {
	if k, ok := kinds[c.scheme()]; ok && (c.scheme() != "memory" || c.Address == "memory") {
		return k, nil
	}
	return kind{}, fmt.Errorf("%w: --lock: %s", ErrUsage, c.unknown())
}

// InProcess tells whether the resource process grants the lock.
func (c Config) InProcess() bool { return c.scheme() == "memory" }

// Patience is how long to wait for a lock whose holder has been stopped.
func (c Config) Patience() time.Duration { return 3*c.TTL + 10*time.Second }

// Open returns a Locker on the service. client reaches the resource process.
func (c Config) Open(client *loopback.Client) (locks.Locker, error) {
	k, err := c.kind()
	if err != nil {
		return nil, err
	}
	locker, err := k.open(c, client)
	if err != nil {
		return nil, err // and not the adapter's nil pointer in an interface
	}
	return locker, nil
}

// Clean removes this run's namespace from the service, once nobody uses it.
func (c Config) Clean(ctx context.Context) error {
	k, err := c.kind()
	if err != nil {
		return err
	}
	if err := k.clean(ctx, c); err != nil {
		return fmt.Errorf("remove %s from %s: %w", c.Namespace, c, err)
	}
	return nil
}

// String is the address without user and password.
func (c Config) String() string {
	scheme, rest, found := strings.Cut(c.Address, "://")
	if !found {
		return c.Address
	}
	authority, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	path, _, _ = strings.Cut(path, "?")
	if path != "" {
		path = "/" + path
	}
	return scheme + "://" + authority + path
}

// Kind is what kind of failure an error is: it chooses the exit status.
type Kind string

// The kinds of failure.
const (
	Usage       Kind = "usage"
	Unreachable Kind = "unreachable" // or not fit to be used
	Other       Kind = "other"
)

// ErrUsage is what the caller has to give otherwise.
var ErrUsage = errors.New("usage")

// KindOf sorts an error of a Locker.
func KindOf(err error) Kind {
	switch {
	case errors.Is(err, ErrUsage), errors.Is(err, locks.ErrBadOption):
		return Usage
	case errors.Is(err, locks.ErrUnreachable), errors.Is(err, locks.ErrUnsupported):
		return Unreachable
	}
	return Other
}

var errPath = errors.New("the address ends with a path; give host:port,host:port")

func usage(c Config, err error) error { return fmt.Errorf("%w: --lock=%s: %w", ErrUsage, c, err) }

// endpoints splits scheme://user:password@host:port,host:port/path.
func (c Config) endpoints() (hosts []string, user *url.Userinfo, path string, err error) {
	_, rest, _ := strings.Cut(c.Address, "://")
	authority, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		// The parser's message would show the password.
		u, err := url.Parse("x://" + authority[:i] + "@host")
		if err != nil {
			return nil, nil, "", errors.New("user or password are not percent-encoded")
		}
		user, authority = u.User, authority[i+1:]
	}
	for host := range strings.SplitSeq(authority, ",") {
		if err := checkHost(host); err != nil {
			return nil, nil, "", err
		}
		hosts = append(hosts, host)
	}
	return hosts, user, path, nil
}
