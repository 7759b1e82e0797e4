package faults_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fencedkv/fencedkv/tests/proxy"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// startEtcd is a cluster of one: the table of package etcdlock's comment.
func startEtcd(t testing.TB) *service {
	srv := servers.StartEtcd(t, nil)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + srv.Addr()}, DialTimeout: patience, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	space := "faults/" + rand.Text()
	queue := func(name string) string { return space + "/" + name + "/" }
	entries := func(ctx context.Context, name string) ([]*mvccpb.KeyValue, error) {
		resp, err := client.Get(ctx, queue(name), clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		if err != nil {
			return nil, err
		}
		return resp.Kvs, nil
	}
	last := func(ctx context.Context, name string) (*mvccpb.KeyValue, error) {
		all, err := entries(ctx, name)
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("lock %q has no entry", name)
		}
		if err != nil {
			return nil, err
		}
		return all[len(all)-1], nil
	}
	const txn = "/etcdserverpb.KV/Txn"
	return &service{
		access:  access{etcdName, []string{srv.Addr()}, space},
		servers: []servers.Server{srv},
		count:   proxy.CountEtcd,
		take:    txn, turn: txn, renew: "/etcdserverpb.Lease/LeaseKeepAlive", release: txn,
		falls: true,
		has: func(ctx context.Context, name, holder string) (bool, error) {
			all, err := entries(ctx, name)
			return slices.ContainsFunc(all, func(e *mvccpb.KeyValue) bool { return string(e.Value) == holder }), err
		},
		entries: func(ctx context.Context, name string) (int, error) {
			all, err := entries(ctx, name)
			return len(all), err
		},
		deleteLast: func(ctx context.Context, name string) error {
			e, err := last(ctx, name)
			if err == nil {
				_, err = client.Delete(ctx, string(e.Key))
			}
			return err
		},
		revokeLast: func(ctx context.Context, name string) error {
			e, err := last(ctx, name)
			if err == nil {
				_, err = client.Revoke(ctx, clientv3.LeaseID(e.Lease))
			}
			return err
		},
		// Its numbers are the revisions of the cluster, which are lost with all
		// data only.
		loseCounter: func(t testing.TB, _ context.Context, _ string) error {
			srv.StartEmpty(t)
			return nil
		},
	}
}
