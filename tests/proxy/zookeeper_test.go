package proxy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func zkConn(t *testing.T, addr string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{addr}, 2*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	go func() { // the channel is small
		for range events {
		}
	}()
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func TestZooKeeperRequestsAreCountedByOperation(t *testing.T) {
	c := proxy.CountZooKeeper(t, servers.SharedZooKeeper(t))
	conn := zkConn(t, c.Addr())
	path := "/" + servers.Namespace(t)
	if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Children(path); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Multi(
		&zk.CreateRequest{Path: path + "/a", Acl: zk.WorldACL(zk.PermAll)},
		&zk.SetDataRequest{Path: path, Data: []byte("x"), Version: -1},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Requests(), []string{"create", "getChildren2", "multi"}; !slices.Equal(got, want) {
		t.Errorf("requests: %v, want %v", got, want)
	}
	if got := c.RoundTrips(); got != 3 {
		t.Errorf("round trips: %d, want 3", got)
	}
	if got := c.Setup(); !slices.Contains(got, "connect") {
		t.Errorf("setup: %v, want connect in it", got)
	}
}

func TestZooKeeperReplyIsLostAfterTheCreate(t *testing.T) {
	addr := servers.SharedZooKeeper(t)
	c := proxy.CountZooKeeper(t, addr)
	conn, direct := zkConn(t, c.Addr()), zkConn(t, addr)
	path := "/" + servers.Namespace(t)
	lost := c.DropReply("create")
	if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err == nil {
		t.Error("create whose reply is lost succeeded")
	}
	waitFor(t, "the loss", lost)
	if there, _, err := direct.Exists(path); err != nil || !there {
		t.Errorf("the node is there: %v, %v, want true", there, err)
	}
	if there, _, err := conn.Exists(path); err != nil || !there {
		t.Errorf("after reconnecting the node is there: %v, %v, want true", there, err)
	}
}
