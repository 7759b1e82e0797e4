package faults_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/tests/internal/zksession"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// zooKeeper is one server: the table of package zklock's comment.
type zooKeeper struct {
	conn *zk.Conn
	addr string
	root string
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func startZooKeeper(t testing.TB) *service {
	srv := servers.StartZooKeeper(t, &servers.ZooKeeperOptions{Config: []string{"maxClientCnxns=0"}})
	conn, events, err := zk.Connect([]string{srv.Addr()}, 4*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	space := "faults" + rand.Text()
	z := &zooKeeper{conn, srv.Addr(), "/" + space}
	return &service{
		access:  access{zooKeeperName, []string{srv.Addr()}, space},
		servers: []servers.Server{srv},
		count:   proxy.CountZooKeeper,
		take:    "create", turn: "getChildren2", renew: "multi", release: "delete",
		lineage: true,
		has:     z.has,
		entries: func(_ context.Context, name string) (int, error) {
			all, err := z.entries(name)
			return len(all), err
		},
		deleteLast: func(_ context.Context, name string) error {
			last, err := z.last(name)
			if err == nil {
				err = conn.Delete(last, -1)
			}
			return err
		},
		revokeLast: z.revokeLast,
		// Its numbers are counted by the lock node.
		loseCounter: z.loseCounter,
	}
}

// entries are the paths of the attempts at a lock, the holder's first.
func (z *zooKeeper) entries(name string) ([]string, error) {
	var all []string
	children, _, err := z.conn.Children(z.root + "/" + name)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	for _, child := range children {
		if strings.HasPrefix(child, "_c_") {
			all = append(all, z.root+"/"+name+"/"+child)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	return all, err
}

func number(path string) string { return path[strings.LastIndex(path, "-"):] }

func (z *zooKeeper) last(name string) (string, error) {
	all, err := z.entries(name)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("lock %q has no entry", name)
	}
	if err != nil {
		return "", err
	}
	return all[len(all)-1], nil
}

// has looks at the first entry only: the holder's data is in it.
func (z *zooKeeper) has(_ context.Context, name, holder string) (bool, error) {
	all, err := z.entries(name)
	if err != nil || len(all) == 0 {
		return false, err
	}
	data, _, err := z.conn.Get(all[0])
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return string(data) == holder, err
}

func (z *zooKeeper) revokeLast(ctx context.Context, name string) error {
	last, err := z.last(name)
	if err != nil {
		return err
	}
	there, stat, err := z.conn.Exists(last)
	for ; there && err == nil; there, _, err = z.conn.Exists(last) {
		if err := cmp.Or(zksession.Close(z.addr, stat.EphemeralOwner), ctx.Err()); err != nil {
			return err
		}
	}
	return err
}

func (z *zooKeeper) loseCounter(_ testing.TB, ctx context.Context, name string) error {
	lock := z.root + "/" + name
	for ctx.Err() == nil {
		children, _, err := z.conn.Children(lock)
		if err != nil {
			return err
		}
		for _, child := range children {
			if err := z.conn.Delete(lock+"/"+child, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		}
		if err := z.conn.Delete(lock, -1); !errors.Is(err, zk.ErrNotEmpty) {
			return err
		}
	}
	return ctx.Err()
}
