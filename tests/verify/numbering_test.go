package verify_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// wantNot wants the answer of a verifier.
func wantNot(t *testing.T, what string, err, reason error) {
	t.Helper()
	if u, ok := errors.AsType[*fence.UnverifiedError](err); !ok || !errors.Is(u.Reason, reason) {
		t.Errorf("%s: got %v, want a *fence.UnverifiedError with the reason %v", what, err, reason)
	}
}

func TestEtcdKnowsItsCluster(t *testing.T) {
	addr, prefix := servers.SharedEtcd(t), servers.Namespace(t)
	l, err := etcdlock.Dial("etcd://"+addr, &etcdlock.Options{Prefix: prefix})
	l = closed(t, l, err)
	lease := bounded.Acquire(t, l, "a")
	tok := lease.Token()
	id := strings.Split(tok.Lineage, ":")[1]
	for what, lineage := range map[string]string{
		"of another cluster":  fmt.Sprintf("etcd:%x:%s/a", 7, prefix),
		"of another prefix":   fmt.Sprintf("etcd:%s:elsewhere/a", id),
		"of no cluster":       fmt.Sprintf("etcd:%s/a", prefix),
		"in another spelling": fmt.Sprintf("etcd:0%s:%s/a", id, prefix),
	} {
		other := tok
		other.Lineage = lineage
		wantNot(t, "the lineage "+what, l.Verify(bounded.Context(t), "a", other), fence.ErrNoVerifier)
	}
	if err := l.Verify(bounded.Context(t), "a", tok); err != nil {
		t.Error(err)
	}

	// The holder finds at its next renewal that its key is not what it was.
	direct, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	keys, err := direct.Get(t.Context(), prefix+"/a/", clientv3.WithPrefix())
	if err != nil || len(keys.Kvs) != 1 {
		t.Fatalf("the keys of the lock are %v, %v, want one", keys, err)
	}
	if _, err := direct.Put(t.Context(), string(keys.Kvs[0].Key), string(keys.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	wantNot(t, "a key that was written again by hand", l.Verify(bounded.Context(t), "a", tok), fence.ErrNotGranted)
}

func TestZooKeeperKnowsItsNumbering(t *testing.T) {
	addr := servers.SharedZooKeeper(t)
	for _, useZxid := range []bool{false, true} {
		root := "/" + servers.Namespace(t)
		dial := func(useZxid bool) *zklock.Locker {
			l, err := zklock.Dial("zk://"+addr+root, &zklock.Options{UseZxid: useZxid})
			return closed(t, l, err)
		}
		l, other := dial(useZxid), dial(!useZxid)
		lease := bounded.Acquire(t, l, "a")
		tok := lease.Token()
		verify := func(v fence.Verifier) error { return v.Verify(bounded.Context(t), "a", tok) }
		if err := verify(l); err != nil {
			t.Error(err)
		}
		wantNot(t, "the other kind of number", verify(other), fence.ErrNoVerifier)
		bounded.Release(t, lease)
		wantNot(t, "a grant that was released", verify(l), fence.ErrNotGranted)

		direct, _, err := zk.Connect([]string{addr}, 4*time.Second, zk.WithLogger(silent{}))
		if err != nil {
			t.Fatal(err)
		}
		defer direct.Close()
		remove := func(node string) {
			t.Helper()
			if err := direct.Delete(node, -1); err != nil {
				t.Fatalf("delete %s: %v", node, err)
			}
		}
		remove(root + "/a")
		if useZxid { // the numbering is the root's
			wantNot(t, "a lock without a node", verify(l), fence.ErrNotGranted)
			remove(root)
		}
		wantNot(t, "a numbering that is gone", verify(l), fence.ErrNoVerifier)
		again := bounded.Acquire(t, dial(useZxid), "a") // which begins with the same number, but for zxids
		wantNot(t, "a numbering that began again", verify(l), fence.ErrNoVerifier)
		if err := l.Verify(bounded.Context(t), "a", again.Token()); err != nil {
			t.Errorf("the new numbering: %v", err)
		}
		bounded.Release(t, again)
	}
}

// A follower may lag behind: what it is asked for after a sync is not older than
// the question.
func TestZooKeeperIsReadAfterASync(t *testing.T) {
	counter := proxy.CountZooKeeper(t, servers.SharedZooKeeper(t))
	l, err := zklock.Dial("zk://"+counter.Addr()+"/"+servers.Namespace(t), nil)
	l = closed(t, l, err)
	lease := bounded.Acquire(t, l, "a")
	counter.Reset()
	if err := l.Verify(bounded.Context(t), "a", lease.Token()); err != nil {
		t.Fatal(err)
	}
	if got, want := counter.Requests(), []string{"sync", "getChildren2", "getData"}; !slices.Equal(got, want) {
		t.Errorf("Verify sent %v, want %v", got, want)
	}
	bounded.Release(t, lease)
	counter.Reset()
	wantNot(t, "a bare number", l.Verify(bounded.Context(t), "a", fence.Number(1)), fence.ErrNoVerifier)
	if got := counter.Requests(); len(got) != 0 {
		t.Errorf("Verify of a lineage of somebody else sent %v, want nothing", got)
	}
}
