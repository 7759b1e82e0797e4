package etcdlock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

var _ fence.Verifier = (*Locker)(nil)

// lineage is that of a lock's tokens. queue is the path of its keys.
func lineage(cluster uint64, queue string) string {
	return locks.Lineage("etcd", fmt.Sprintf("%x:%s", cluster, queue))
}

// Verify implements fence.Verifier: nil means that the lock that is named like
// resource is held by the grant of t, as etcd's quorum says (one linearizable
// read). It waits for Options.RequestTimeout at most, and needs no permission but
// to read the prefix.
func (l *Locker) Verify(ctx context.Context, resource string, t fence.Token) error {
	no := &fence.UnverifiedError{Resource: resource, Offered: t}
	because := func(reason, err error) error {
		no.Reason, no.Err = reason, err
		return no
	}
	end, err := l.group.Begin("verify", resource)
	if err != nil {
		return because(fence.ErrNoAnswer, err)
	}
	defer end()

	queue := queueOf(l.opts.prefix(), resource)
	cluster, ok := clusterOf(t.Lineage, strings.TrimSuffix(queue, "/"))
	if !ok {
		return because(fence.ErrNoVerifier, nil)
	}
	request, cancel := l.request(ctx)
	defer cancel()
	defer context.AfterFunc(l.closing, cancel)()
	resp, err := l.client.Get(request, queue, clientv3.WithFirstCreate()...)
	switch {
	case err != nil && l.closing.Err() != nil:
		return because(fence.ErrNoAnswer, &locks.Error{Op: "verify", Name: resource, Kind: locks.ErrClosed})
	case err != nil:
		return because(fence.ErrNoAnswer, locks.Unanswered(ctx, resource, l.failure("verify", resource, err)))
	case resp.Header.ClusterId != cluster:
		return because(fence.ErrNoVerifier, fmt.Errorf("the id of this etcd cluster is %x", resp.Header.ClusterId))
	case len(resp.Kvs) == 0:
		return because(fence.ErrNotGranted, nil)
	}
	kv := resp.Kvs[0]
	no.Current = fence.Token{Lineage: t.Lineage, Seq: uint64(kv.CreateRevision), Holder: string(kv.Value)}
	switch {
	case no.Current != t:
		return because(fence.ErrNotGranted, nil)
	case kv.ModRevision != kv.CreateRevision:
		return because(fence.ErrNotGranted, errNotThere)
	}
	return nil
}

// clusterOf returns the cluster id in a lineage of the lock with that path, and
// whether it is one.
func clusterOf(of, path string) (cluster uint64, ok bool) {
	rest, _ := strings.CutPrefix(of, "etcd:")
	id, _, _ := strings.Cut(rest, ":")
	cluster, err := strconv.ParseUint(id, 16, 64)
	return cluster, err == nil && lineage(cluster, path) == of
}
