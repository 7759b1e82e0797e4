package etcdlock

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/fencedkv/fencedkv/locks"
)

// Dial returns a Locker with a client of its own, which Close closes. The
// address is
//
//	etcd://[user:password@]host:port[,host:port...]
//
// or the same with etcds:// for TLS. User and password are percent-encoded.
//
// Without a user Dial sends nothing: an etcd that is away shows at the first
// Acquire. With one it logs in, and returns an error over locks.ErrUnreachable
// if etcd does not answer within Options.RequestTimeout or refuses. A bad address
// is an error over locks.ErrBadOption. No error contains the password.
func Dial(address string, opts *Options) (*Locker, error) {
	if err := opts.check("dial"); err != nil {
		return nil, err
	}
	config, err := parse(address)
	if err != nil {
		return nil, &locks.Error{Op: "dial", Kind: locks.ErrBadOption, Err: err}
	}
	if config.TLS != nil {
		config.TLS = opts.tls()
	}
	config.DialTimeout = opts.requestTimeout()
	config.DialKeepAliveTime = 10 * time.Second // servers refuse less than 5 s
	config.DialKeepAliveTimeout = 5 * time.Second
	config.Logger = zap.NewNop()
	link := &network{}
	config.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(link.intercept), grpc.WithConnectParams(grpc.ConnectParams{
		Backoff: backoff.Config{
			BaseDelay:  20 * time.Millisecond,
			Multiplier: 1.6,
			Jitter:     0.2,
			MaxDelay:   min(opts.ttl()/8, 3*time.Second),
		},
		MinConnectTimeout: min(opts.ttl(), 5*time.Second),
	})}
	client, err := clientv3.New(config)
	if err != nil {
		err = fmt.Errorf("log in at %s: %w", strings.Join(config.Endpoints, ","), err)
		return nil, failure("dial", "", opts, link, err)
	}
	l, err := New(client, opts)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	l.owned, l.network = client, link
	return l, nil
}

// parse reads an address without url.Parse, which knows one host only and
// quotes what it cannot read, a password included.
func parse(address string) (clientv3.Config, error) {
	var config clientv3.Config
	scheme, rest, found := strings.Cut(address, "://")
	web := map[string]string{"etcd": "http", "etcds": "https"}[scheme]
	if !found || web == "" {
		return config, errors.New("the address does not begin with etcd:// or etcds://; write etcd://host:port")
	}
	if web == "https" {
		config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		var err error
		if config.Username, config.Password, err = userinfo(rest[:at]); err != nil {
			return config, err
		}
		rest = rest[at+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	if path != "" {
		return config, errors.New("the address ends with a path; give the prefix in Options")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		name, port, err := net.SplitHostPort(host)
		if _, notNumber := strconv.ParseUint(port, 10, 16); err != nil || name == "" || notNumber != nil {
			// Not quoted: it may be user:password with the rest forgotten.
			return config, fmt.Errorf("server %d of the address is not host:port; write etcd://host:port,host:port", len(config.Endpoints)+1)
		}
		config.Endpoints = append(config.Endpoints, web+"://"+host)
	}
	return config, nil
}

func userinfo(s string) (user, password string, err error) {
	user, password, _ = strings.Cut(s, ":")
	user, userErr := url.PathUnescape(user)
	password, passwordErr := url.PathUnescape(password)
	if userErr != nil || passwordErr != nil {
		return "", "", errors.New("user and password in the address are not percent-encoded")
	}
	if user == "" || password == "" {
		return "", "", errors.New("the address has an @ but no user:password before it")
	}
	return user, password, nil
}
