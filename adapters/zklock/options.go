package zklock

import (
	"crypto/tls"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/locks"
)

// DefaultSessionTimeout is what Dial asks for if Options.SessionTimeout is 0.
const DefaultSessionTimeout = 10 * time.Second

// MinSessionTimeout is the least that Options.SessionTimeout may be. Servers
// have a minimum of their own, by default 4 s.
const MinSessionTimeout = 100 * time.Millisecond

// Options are the settings of a Locker; nil and zero fields mean the defaults.
// All Lockers of one set of locks must have the same Root and UseZxid; the rest
// may differ.
type Options struct {
	// Root is the path below which the locks are. It is created if it is not
	// there. The default is the path of the address, or "/fencedkv".
	Root string

	// SessionTimeout is how long the server keeps a session, and its locks,
	// without a sign of life, and with that how long a crashed holder keeps the
	// others out. In whole milliseconds. If the server does not keep exactly
	// this time, Dial returns an error over locks.ErrBadOption. With 0, the
	// default, it asks for DefaultSessionTimeout and takes what it gets.
	SessionTimeout time.Duration

	// MaxHold ends renewal that long after the grant; the lock is then lost at
	// its deadline. The default, 0, is no limit.
	MaxHold time.Duration

	// RequestTimeout bounds TryAcquire as a whole, each request of
	// Acquire (which then tries again on a new connection), and one attempt to
	// release. The default is half the session timeout.
	RequestTimeout time.Duration

	// Auth, if set, is presented to the server by every connection. Nodes are
	// then created for this identity only, else for everybody. A user and a
	// password in the address are digest authentication. Where the server asks
	// for client certificates, the nodes are also open to the name in the one of
	// TLS.
	Auth *Auth

	// TLS, if set, makes the connections TLS connections. The host of the
	// address is the server's name, unless ServerName is set.
	TLS *tls.Config

	// UseZxid takes the transaction id of a grant as its number, not the
	// sequence number: see Tokens in the package's comment.
	UseZxid bool

	// Logger receives warnings, and at debug level what the client library
	// says; nil is silent.
	Logger hclog.Logger
}

// Auth is an identity as ZooKeeper knows it, such as the scheme "digest" with
// the credential "user:password".
type Auth struct {
	Scheme     string
	Credential []byte
}

// String does not print the credential.
func (a Auth) String() string { return a.Scheme + ":***" }

// GoString does not print the credential.
func (a Auth) GoString() string { return fmt.Sprintf("zklock.Auth{Scheme: %q}", a.Scheme) }

func (o *Options) sessionTimeout() time.Duration {
	if o == nil || o.SessionTimeout == 0 {
		return DefaultSessionTimeout
	}
	return o.SessionTimeout
}

func (o *Options) requestTimeout() time.Duration {
	if o == nil || o.RequestTimeout == 0 {
		return o.sessionTimeout() / 2
	}
	return o.RequestTimeout
}

func (o *Options) maxHold() time.Duration {
	if o == nil {
		return 0
	}
	return o.MaxHold
}

func (o *Options) auth() *Auth {
	if o == nil {
		return nil
	}
	return o.Auth
}

func (o *Options) tls() *tls.Config {
	if o == nil {
		return nil
	}
	return o.TLS
}

func (o *Options) useZxid() bool { return o != nil && o.UseZxid }

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
	case o.SessionTimeout != 0 && (o.SessionTimeout < MinSessionTimeout || o.SessionTimeout > math.MaxInt32*time.Millisecond):
		return badOption("SessionTimeout is %v; use %v to %v", o.SessionTimeout, MinSessionTimeout, math.MaxInt32*time.Millisecond)
	case o.SessionTimeout%time.Millisecond != 0:
		return badOption("SessionTimeout is %v; use whole milliseconds", o.SessionTimeout)
	case o.MaxHold < 0:
		return badOption("MaxHold is %v; use a positive time, or 0 for no limit", o.MaxHold)
	case o.RequestTimeout < 0:
		return badOption("RequestTimeout is %v; use a positive time, or 0 for the default", o.RequestTimeout)
	case o.Auth != nil && o.Auth.Scheme == "":
		return badOption(`Auth has no Scheme; use "digest", for example`)
	}
	return nil
}

// checkRoot refuses paths that ZooKeeper would, and those of its own.
func checkRoot(root string) error {
	if !strings.HasPrefix(root, "/") || root == "/" || len(root) > 1024 {
		return badOption("the root is %q; use an absolute path of 1 to 1023 bytes below /", root)
	}
	for i, part := range strings.Split(root[1:], "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return badOption("the root is %q; it has an empty part, or one that is . or ..", root)
		case i == 0 && part == "zookeeper":
			return badOption("the root is %q; /zookeeper is ZooKeeper's own", root)
		case strings.ContainsFunc(part, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
			return badOption("the root is %q; use printable ASCII without spaces", root)
		}
	}
	return nil
}

func badOption(format string, args ...any) error {
	return &locks.Error{Op: "zklock: options", Kind: locks.ErrBadOption, Err: fmt.Errorf(format, args...)}
}
