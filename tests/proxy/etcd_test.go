package proxy_test

import (
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func etcdClient(t *testing.T, addr string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

const (
	pathTxn   = "/etcdserverpb.KV/Txn"
	pathRange = "/etcdserverpb.KV/Range"
	pathPut   = "/etcdserverpb.KV/Put"
	pathWatch = "/etcdserverpb.Watch/Watch"
)

func TestEtcdRequestsAreCountedByPath(t *testing.T) {
	key := servers.Namespace(t)
	c := proxy.CountEtcd(t, servers.SharedEtcd(t))
	client := etcdClient(t, c.Addr())
	ctx := t.Context()
	if _, err := client.Get(ctx, key); err != nil {
		t.Fatal(err)
	}
	c.Reset()
	if _, err := client.Txn(ctx).Then(clientv3.OpPut(key, strings.Repeat("x", 100<<10))).Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(ctx, key); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Requests(), []string{pathTxn, pathRange}; !slices.Equal(got, want) {
		t.Errorf("requests: %v, want %v", got, want)
	}
	if got := c.RoundTrips(); got != 2 {
		t.Errorf("round trips: %d, want 2", got)
	}
	c.Reset()

	// Both watches share one stream: two messages, one HEADERS frame.
	for _, key := range []string{"a", "b"} {
		w := client.Watch(ctx, key+key, clientv3.WithCreatedNotify())
		if r := <-w; r.Err() != nil || !r.Created {
			t.Fatalf("watch: %+v", r)
		}
	}
	if got, want := c.Requests(), []string{pathWatch, pathWatch}; !slices.Equal(got, want) {
		t.Errorf("requests of two watches: %v, want %v", got, want)
	}
}

func TestEtcdReplyIsLostAfterTheTransaction(t *testing.T) {
	key := servers.Namespace(t)
	addr := servers.SharedEtcd(t)
	c := proxy.CountEtcd(t, addr)
	client, direct := etcdClient(t, c.Addr()), etcdClient(t, addr)
	if _, err := client.Get(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	lost := c.DropReply(pathTxn)
	if _, err := client.Txn(t.Context()).Then(clientv3.OpPut(key, "x")).Commit(); err == nil {
		t.Error("transaction whose reply is lost succeeded")
	}
	waitFor(t, "the loss", lost)
	if r, err := direct.Get(t.Context(), key); err != nil || r.Count != 1 {
		t.Errorf("the key: %v, %v, want it there once", r, err)
	}
	if _, err := client.Put(t.Context(), key, "y"); err != nil {
		t.Errorf("after reconnecting: %v", err)
	}
	if got := c.Requests(); !slices.Contains(got, pathPut) {
		t.Errorf("requests: %v, want %s in it", got, pathPut)
	}
}

func TestEtcdRequestsWithoutAReplyAreCounted(t *testing.T) {
	key := servers.Namespace(t)
	c := proxy.CountEtcd(t, servers.SharedEtcd(t))
	client := etcdClient(t, c.Addr())
	if _, err := client.Get(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if n := c.Unanswered(); n != 0 {
		t.Errorf("%d requests without a reply after the reply, want none", n)
	}
	held, letGo := c.HoldRequest(pathTxn)
	done := make(chan error)
	go func() {
		_, err := client.Txn(t.Context()).Then(clientv3.OpPut(key, "x")).Commit()
		done <- err
	}()
	waitFor(t, "the request", held)
	if n := c.Unanswered(); n != 1 {
		t.Errorf("%d requests without a reply while one is held, want 1", n)
	}
	letGo()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := c.Unanswered(); n != 0 {
		t.Errorf("%d requests without a reply in the end, want none", n)
	}
	<-client.Watch(t.Context(), key, clientv3.WithCreatedNotify())
	if n := c.Unanswered(); n != 0 {
		t.Errorf("%d requests without a reply while a watch stands, want none", n)
	}
}
