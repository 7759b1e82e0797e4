package etcdlock_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestUserWithPermissionOnThePrefixOnly(t *testing.T) {
	t.Parallel()
	const password = "p@ss/w:rd %"
	srv := servers.StartEtcd(t, nil)
	s := newSite(t, srv.Addr())
	protect(t, s, "app", password)
	address := "etcd://app:" + url.PathEscape(password) + "@" + s.addr
	dial := func(t *testing.T, address string, opts *etcdlock.Options) *etcdlock.Locker {
		l, err := etcdlock.Dial(address, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { bounded.Close(t, l) })
		return l
	}

	t.Run("holds, waits, renews and releases", func(t *testing.T) {
		opts := s.options()
		opts.TTL = 3 * time.Second // checking passwords keeps the processors busy
		held := bounded.Try(t, dial(t, address, opts), "a")
		b := dial(t, address, opts)
		if _, err := b.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("got %v, want ErrHeld", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), bounded.Patience)
		defer cancel()
		waiter := bounded.Acquiring(ctx, b, "a")
		before := held.Deadline()
		bounded.Eventually(t, "a renewal", func() bool { return held.Deadline().After(before.Add(time.Second)) })
		bounded.Release(t, held)
		bounded.Release(t, bounded.Granted(t, "the waiter", waiter))
	})
	t.Run("is told of a wrong password", func(t *testing.T) {
		_, err := etcdlock.Dial("etcd://app:hunter2@"+s.addr, s.options())
		refusedBecause(t, err, "user or password", "hunter2")
	})
	t.Run("is told of a missing user", func(t *testing.T) {
		_, err := dial(t, "etcd://"+s.addr, s.options()).TryAcquire(bounded.Context(t), "a")
		refusedBecause(t, err, "user or password", password)
	})
	t.Run("is told of a missing permission", func(t *testing.T) {
		_, err := dial(t, address, &etcdlock.Options{Prefix: "elsewhere", TTL: time.Second}).Acquire(bounded.Context(t), "a")
		refusedBecause(t, err, `permission on the prefix "elsewhere/"`, password)
	})
	t.Run("is told when the permission is taken away while it waits", func(t *testing.T) {
		opts := s.options()
		opts.TTL = 3 * time.Second
		held := bounded.Try(t, dial(t, "etcd://root:root@"+s.addr, opts), "b")
		root, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + s.addr}, Username: "root", Password: "root"})
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		waiter := bounded.Acquiring(bounded.Context(t), dial(t, address, opts), "b")
		bounded.Eventually(t, "the waiter's entry", func() bool {
			resp, err := root.Get(t.Context(), s.queue("b"), clientv3.WithPrefix())
			return err == nil && len(resp.Kvs) == 2
		})
		from := s.prefix + "/"
		if _, err := root.RoleRevokePermission(t.Context(), "locks", from, clientv3.GetPrefixRangeEnd(from)); err != nil {
			t.Fatal(err)
		}
		refusedBecause(t, bounded.Receive(t, "the waiter", waiter).Err, "permission on the prefix", password)
		bounded.Release(t, held)
	})
}

func refusedBecause(t *testing.T, err error, reason, secret string) {
	t.Helper()
	if !errors.Is(err, locks.ErrUnreachable) || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %v, want an error over ErrUnreachable that says %q", err, reason)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error prints the password: %v", err)
	}
}

// protect turns authentication on. The user may read and write the site's
// prefix only.
func protect(t *testing.T, s *site, user, password string) {
	t.Helper()
	ctx, c := t.Context(), s.direct
	for _, step := range []func() error{
		func() error { _, err := c.RoleAdd(ctx, "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "root", "root"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.RoleAdd(ctx, "locks"); return err },
		func() error {
			from := s.prefix + "/"
			_, err := c.RoleGrantPermission(ctx, "locks", from, clientv3.GetPrefixRangeEnd(from), clientv3.PermissionType(clientv3.PermReadWrite))
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

func TestDialSpeaksTLS(t *testing.T) {
	t.Parallel()
	certificate := servers.NewCertificate(t)
	address := "etcds://" + servers.StartEtcd(t, &servers.EtcdOptions{TLS: certificate}).Addr()
	l, err := etcdlock.Dial(address, &etcdlock.Options{TTL: time.Second, TLS: certificate.ClientConfig()})
	if err != nil {
		t.Fatal(err)
	}
	defer bounded.Close(t, l)
	bounded.Release(t, bounded.Try(t, l, "a"))

	stranger, err := etcdlock.Dial(address, &etcdlock.Options{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer bounded.Close(t, stranger)
	_, err = stranger.TryAcquire(bounded.Context(t), "a")
	refusedBecause(t, err, "certificate", "secret")
}
