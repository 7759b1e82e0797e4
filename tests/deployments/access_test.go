package deployments_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/adapters/redislock"
	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// Checking certificates and passwords keeps the processors busy.
const patientTTL = 4 * time.Second

const password = "p@ss/w:rd %"

// noCertificate is what a client sees that has none. With TLS 1.3 it learns that
// after the handshake, in a race with the end of the connection.
var noCertificate = []string{"certificate", "reset", "broken pipe", "EOF"}

// refused wants an error that says why, and does not show the password.
func refused(t *testing.T, who string, l locks.Locker, err error, kind error, reasons ...string) {
	t.Helper()
	if err == nil {
		_, err = l.TryAcquire(bounded.Context(t), "a")
	}
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", who, err, kind)
		return
	}
	said := false
	for _, reason := range reasons {
		said = said || strings.Contains(err.Error(), reason)
	}
	if !said || strings.Contains(err.Error(), "p@ss") || strings.Contains(err.Error(), "p%40ss") {
		t.Errorf("%s: %v, want a reason like %q and no password", who, err, reasons)
	}
}

func TestRedisWithTLSAndAUserOfTheLocksOnly(t *testing.T) {
	t.Parallel()
	certificate := servers.NewCertificate(t)
	srv := servers.StartRedis(t, &servers.RedisOptions{
		TLS: certificate, ClientCertificates: true, Password: "of the operator",
		Config: []string{`user app on ">` + password + `" ~locks:* resetchannels &locks:* +@all -@admin -@dangerous`},
	})
	connect := func(user, secret, prefix string, config *tls.Config) *redislock.Locker {
		client := redis.NewClient(&redis.Options{
			Addr: srv.Addr(), Username: user, Password: secret, TLSConfig: config,
			ContextTimeoutEnabled: true, DialerRetries: 1,
		})
		t.Cleanup(func() { client.Close() })
		return redisLocker(t, client, &redislock.Options{Prefix: prefix, TTL: patientTTL})
	}
	own := certificate.OwnerConfig()
	holdsWaitsRenewsReleases(t, bounded.Try(t, connect("app", password, "locks", own), "a"), connect("app", password, "locks", own))

	bounded.Release(t, bounded.Try(t, connect("", "of the operator", "elsewhere", own), "a"))
	refused(t, "no password", connect("", "", "locks", own), nil, locks.ErrUnreachable, "NOAUTH")
	refused(t, "a wrong password", connect("app", "wrong", "locks", own), nil, locks.ErrUnreachable, "WRONGPASS")
	refused(t, "another prefix", connect("app", password, "elsewhere", own), nil, locks.ErrUnreachable, "NOPERM")
	refused(t, "no certificate", connect("app", password, "locks", certificate.ClientConfig()), nil, locks.ErrUnreachable, noCertificate...)
	refused(t, "a server nobody vouches for", connect("app", password, "locks", &tls.Config{}), nil, locks.ErrUnreachable, "certificate")
}

func TestEtcdWithTLSAndAUserOfThePrefixOnly(t *testing.T) {
	t.Parallel()
	certificate := servers.NewCertificate(t)
	srv := servers.StartEtcd(t, &servers.EtcdOptions{TLS: certificate, ClientCertificates: true})
	own := func(user, secret string) *clientv3.Client {
		c, err := clientv3.New(clientv3.Config{
			Endpoints: []string{"https://" + srv.Addr()}, TLS: certificate.OwnerConfig(),
			Username: user, Password: secret, Logger: zap.NewNop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	authenticate(t, own("", ""), "app", password, "locks/")
	dial := func(user, prefix string, config *tls.Config) (*etcdlock.Locker, error) {
		l, err := etcdlock.Dial("etcds://"+user+srv.Addr(), &etcdlock.Options{Prefix: prefix, TTL: patientTTL, TLS: config})
		if err == nil {
			t.Cleanup(func() { bounded.Close(t, l) })
		}
		return l, err
	}
	user := "app:" + url.PathEscape(password) + "@"
	l, err := dial(user, "locks", certificate.OwnerConfig())
	if err != nil {
		t.Fatal(err)
	}
	onOwnClient, err := etcdlock.New(own("app", password), &etcdlock.Options{Prefix: "locks", TTL: patientTTL})
	holdsWaitsRenewsReleases(t, bounded.Try(t, l, "a"), closing(t, onOwnClient, err))

	l, err = dial("app:wrong@", "locks", certificate.OwnerConfig())
	refused(t, "a wrong password", l, err, locks.ErrUnreachable, "user or password")
	l, err = dial(user, "elsewhere", certificate.OwnerConfig())
	refused(t, "another prefix", l, err, locks.ErrUnreachable, `permission on the prefix "elsewhere/"`)
	l, err = dial("", "locks", certificate.ClientConfig())
	refused(t, "no certificate", l, err, locks.ErrUnreachable, noCertificate...)
	l, err = dial("", "locks", &tls.Config{})
	refused(t, "a server nobody vouches for", l, err, locks.ErrUnreachable, "certificate")
}

// authenticate turns authentication on, with a user who may read and write what
// begins with the prefix.
func authenticate(t *testing.T, c *clientv3.Client, user, password, prefix string) {
	t.Helper()
	ctx := bounded.Context(t)
	for _, step := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", "root"); return err },
		func() error { _, err := c.RoleAdd(ctx, "root"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.RoleAdd(ctx, "locks"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "locks", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserAdd(ctx, user, password); return err },
		func() error { _, err := c.UserGrantRole(ctx, user, "locks"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestZooKeeperWithTLSAndNodesOfOneUser(t *testing.T) {
	t.Parallel()
	certificate := servers.NewCertificate(t)
	srv := servers.StartZooKeeper(t, &servers.ZooKeeperOptions{TLS: certificate, ClientCertificates: true})
	dial := func(user string, config *tls.Config) (*zklock.Locker, error) {
		l, err := zklock.Dial("zk://"+user+srv.Addr()+"/locks", &zklock.Options{SessionTimeout: patientTTL, TLS: config})
		if err == nil {
			t.Cleanup(func() { bounded.Close(t, l) })
		}
		return l, err
	}
	user := "app:" + url.PathEscape(password) + "@"
	app := certificate.UserConfig(t, "app")
	var both []*zklock.Locker
	for range 2 {
		l, err := dial(user, app)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, l)
	}
	lease := bounded.Try(t, both[0], "a")
	observer := tlsZooKeeperClient(t, srv.Addr(), certificate.OwnerConfig())
	if _, _, err := observer.Children("/locks/a"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("somebody else reads the lock node: %v, want zk.ErrNoAuth", err)
	}
	if err := observer.AddAuth("digest", []byte("app:"+password)); err != nil {
		t.Fatal(err)
	}
	children, _, err := observer.Children("/locks/a")
	if err != nil || len(children) != 1 {
		t.Fatalf("the entries of a held lock: %v, %v, want one", children, err)
	}
	for _, node := range []string{"/locks", "/locks/a", "/locks/a/" + children[0]} {
		acl, _, err := observer.GetACL(node)
		// The certificate is an identity, too.
		want := append(zk.DigestACL(zk.PermAll, "app", password), zk.ACL{Perms: zk.PermAll, Scheme: "x509", ID: "CN=app"})
		slices.SortFunc(acl, func(a, b zk.ACL) int { return strings.Compare(a.Scheme, b.Scheme) })
		if err != nil || !slices.Equal(acl, want) {
			t.Errorf("%s is for %v (%v), want %v", node, acl, err, want)
		}
	}
	holdsWaitsRenewsReleases(t, lease, both[1])

	l, err := dial("app:wrong@", certificate.OwnerConfig())
	refused(t, "a wrong password", l, err, locks.ErrBadOption, "Options.Auth")
	l, err = dial("", certificate.OwnerConfig())
	refused(t, "no user", l, err, locks.ErrBadOption, "Options.Auth")
	l, err = dial(user, certificate.ClientConfig())
	refused(t, "no certificate", l, err, locks.ErrUnreachable, noCertificate...)
	l, err = dial(user, &tls.Config{})
	refused(t, "a server nobody vouches for", l, err, locks.ErrUnreachable, "certificate")
}

func tlsZooKeeperClient(t *testing.T, addr string, config *tls.Config) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, patientTTL, zk.WithLogger(quiet{}),
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		for range events {
		}
	})
	return c
}
