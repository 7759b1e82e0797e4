package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// opsPerTxn is below the 128 that etcd allows by default.
const opsPerTxn = 100

// renew extends the session once and looks after its keys. Calls take turns.
func (s *session) renew(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.ended(); err != nil {
		return err
	}
	sent := time.Now()
	if err := s.keepAlive(ctx); err != nil {
		if leaseGone(err) {
			s.end(errors.New("etcd revoked its lease, or let it run out"), true)
		}
		return fmt.Errorf("keep alive: %w", err)
	}
	s.mu.Lock()
	s.sent = sent
	entries := s.created()
	orphans := s.orphanKeys()
	s.mu.Unlock()

	for some := range slices.Chunk(entries, opsPerTxn) {
		if err := s.verify(ctx, some, sent); err != nil {
			return fmt.Errorf("read the grants' keys: %w", err)
		}
	}
	for some := range slices.Chunk(orphans, opsPerTxn) {
		if err := s.removeKeys(ctx, some); err != nil {
			return fmt.Errorf("remove keys left behind: %w", err)
		}
	}
	return nil
}

func (s *session) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// keepAlive asks once. The client's KeepAlive has a schedule of its own, and its
// KeepAliveOnce asks again without a pause while there is no leader.
func (s *session) keepAlive(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := clientv3.RetryLeaseClient(s.client).LeaseKeepAlive(ctx, grpc.WaitForReady(true))
	if err != nil {
		return clientv3.ContextError(ctx, err)
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(s.id)}); err != nil {
		return clientv3.ContextError(ctx, err)
	}
	resp, err := stream.Recv()
	if err != nil {
		return clientv3.ContextError(ctx, err)
	}
	if resp.TTL <= 0 {
		return rpctypes.ErrLeaseNotFound
	}
	return nil
}

// created and orphanKeys need s.mu.
func (s *session) created() []*entry {
	var all []*entry
	for e := range s.entries {
		if e.rev != 0 {
			all = append(all, e)
		}
	}
	return all
}

func (s *session) orphanKeys() []key {
	var all []key
	for k := range s.orphans {
		all = append(all, k)
	}
	return all
}

// verify reads the entries' keys. A lease whose key is the one that was created
// is renewed as of sent; the other entries are lost.
func (s *session) verify(ctx context.Context, entries []*entry, sent time.Time) error {
	gets := make([]clientv3.Op, len(entries))
	for i, e := range entries {
		gets[i] = clientv3.OpGet(string(e.key), clientv3.WithKeysOnly())
	}
	resp, err := s.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return err
	}
	for i, e := range entries {
		if !e.untouched(resp.Responses[i].GetResponseRange().Kvs) {
			e.lose(errNotThere)
			continue
		}
		s.mu.Lock()
		control := e.control
		s.mu.Unlock()
		if control != nil {
			control.Renewed(sent)
		}
	}
	return nil
}

func (s *session) removeKeys(ctx context.Context, keys []key) error {
	deletes := make([]clientv3.Op, len(keys))
	for i, k := range keys {
		deletes[i] = clientv3.OpDelete(string(k))
	}
	_, err := s.client.Txn(ctx).Then(deletes...).Commit()
	return err
}
