package service

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/locks"
)

var zooKeeper = kind{
	ttl: 4 * time.Second, // the least that a server grants with its default tickTime
	check: func(c Config) error {
		_, _, _, err := c.endpoints()
		return err
	},
	open: func(c Config, _ *loopback.Client) (locks.Locker, error) {
		address, root := splitRoot(c)
		return zklock.Dial(address, &zklock.Options{
			Root: root, SessionTimeout: c.TTL, RequestTimeout: min(c.TTL/2, 5*time.Second),
		})
	},
	clean: func(ctx context.Context, c Config) error {
		hosts, user, _, err := c.endpoints()
		if err != nil {
			return err
		}
		_, root := splitRoot(c)
		conn, _, err := zk.Connect(hosts, 4*time.Second, zk.WithLogger(silent{}))
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, conn.Close)() // no call of the client takes a context
		done := make(chan error, 1)
		go func() {
			defer conn.Close()
			if err := identify(conn, user); err != nil {
				done <- err
				return
			}
			done <- removeTree(conn, root)
		}()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	},
}

// splitRoot returns the address without its path, and the run's node below that
// path. The path itself is made if it is not there, and stays.
func splitRoot(c Config) (address, root string) {
	scheme, rest, _ := strings.Cut(c.Address, "://")
	authority, path, _ := strings.Cut(rest, "/")
	root = "/" + c.Namespace
	if path = strings.Trim(path, "/"); path != "" {
		root = "/" + path + root
	}
	return scheme + "://" + authority, root
}

func identify(conn *zk.Conn, user *url.Userinfo) error {
	if user == nil {
		return nil
	}
	password, _ := user.Password()
	return conn.AddAuth("digest", []byte(user.Username()+":"+password))
}

func removeTree(conn *zk.Conn, path string) error {
	children, _, err := conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := removeTree(conn, path+"/"+child); err != nil {
			return err
		}
	}
	if err := conn.Delete(path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

// silent is a logger for a client that would write to standard error.
type silent struct{}

func (silent) Printf(string, ...any) {}
