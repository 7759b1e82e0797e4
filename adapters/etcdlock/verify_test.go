package etcdlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// Range is the read of a member that lags behind: it answers what the quorum
// knows only if it is asked for that.
func (s *server) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if s.hang != nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	resp := &pb.RangeResponse{Header: &pb.ResponseHeader{ClusterId: 7}}
	if r.Serializable {
		return resp, nil
	}
	resp.Kvs = []*mvccpb.KeyValue{{Key: append(r.Key, "1.0"...), Value: []byte("h"), CreateRevision: revision, ModRevision: revision}}
	return resp, nil
}

var granted = fence.Token{Lineage: "etcd:7:fencedkv/locks/a", Seq: revision, Holder: "h"}

func TestVerifyReadsWhatTheQuorumKnows(t *testing.T) {
	l := (&server{}).locker(t, nil)
	if err := l.Verify(soon(t), "a", granted); err != nil {
		t.Errorf("the holder's token: %v", err)
	}
}

func TestVerifyWithoutAnAnswer(t *testing.T) {
	verify := func(ctx context.Context, l *etcdlock.Locker, want ...error) {
		t.Helper()
		err := l.Verify(ctx, "a", granted)
		for _, want := range append(want, fence.ErrUnverified, fence.ErrNoAnswer) {
			if !errors.Is(err, want) {
				t.Errorf("got %v, want an error over %v", err, want)
			}
		}
	}
	l := (&server{hang: make(chan struct{})}).locker(t, &etcdlock.Options{RequestTimeout: 50 * time.Millisecond})
	verify(soon(t), l, locks.ErrUnreachable)
	l = (&server{hang: make(chan struct{})}).locker(t, nil)
	ctx, cancel := context.WithTimeout(soon(t), 50*time.Millisecond)
	defer cancel()
	verify(ctx, l, locks.ErrUnreachable, locks.ErrCancelled, context.DeadlineExceeded)
	done := make(chan struct{})
	go func() {
		defer close(done)
		verify(soon(t), l, locks.ErrClosed)
	}()
	if err := l.Close(soon(t)); err != nil {
		t.Error(err)
	}
	<-done
	verify(soon(t), l, locks.ErrClosed)
}
