package etcdlock_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
)

// server answers what a real etcd cannot be made to answer.
type server struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedLeaseServer
	pb.UnimplementedKVServer

	version string
	hang    chan struct{} // if not nil, transactions wait for it
	lead    bool          // renewals succeed
	extra   int64         // seconds that leases get beyond what was asked
	lose    atomic.Int32  // so many transactions come to nothing
	keep    atomic.Bool   // releases come to nothing

	mu       sync.Mutex
	counted  time.Time // the arrival of what the lease time counts from
	renewals int
	leases   int64
	revoked  []int64
	created  []string
	holders  []string // values of created
	deleted  []string
}

func (s *server) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{}, Version: s.version}, nil
}

func (s *server) LeaseGrant(_ context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted = time.Now()
	s.leases++
	return &pb.LeaseGrantResponse{Header: &pb.ResponseHeader{}, ID: s.leases, TTL: r.TTL + s.extra}, nil
}

func (s *server) LeaseRevoke(_ context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = append(s.revoked, r.ID)
	return &pb.LeaseRevokeResponse{Header: &pb.ResponseHeader{}}, nil
}

func (s *server) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.renewals++
	if s.lead {
		s.counted = time.Now()
	}
	s.mu.Unlock()
	if !s.lead {
		return status.Error(codes.Unavailable, "etcdserver: no leader")
	}
	return stream.Send(&pb.LeaseKeepAliveResponse{Header: &pb.ResponseHeader{}, ID: r.ID, TTL: 1})
}

const revision = 42

// Txn finds every queue empty and every key of a read untouched.
func (s *server) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if s.hang != nil {
		select {
		case <-s.hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.lose.Add(-1) >= 0 {
		return nil, status.Error(codes.Unavailable, "etcdserver: request timed out")
	}
	if s.keep.Load() && len(r.Compare) > 0 && r.Success[0].GetRequestDeleteRange() != nil {
		return nil, status.Error(codes.Unavailable, "etcdserver: request timed out")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &pb.TxnResponse{Header: &pb.ResponseHeader{ClusterId: 7, Revision: revision}, Succeeded: true}
	for _, op := range r.Success {
		found := &pb.RangeResponse{}
		if put := op.GetRequestPut(); put != nil {
			s.created, s.holders = append(s.created, string(put.Key)), append(s.holders, string(put.Value))
		}
		if del := op.GetRequestDeleteRange(); del != nil {
			s.deleted = append(s.deleted, string(del.Key))
		}
		if get := op.GetRequestRange(); get != nil && get.RangeEnd == nil {
			found.Kvs = []*mvccpb.KeyValue{{Key: get.Key, CreateRevision: revision, ModRevision: revision}}
		}
		resp.Responses = append(resp.Responses, &pb.ResponseOp{
			Response: &pb.ResponseOp_ResponseRange{ResponseRange: found},
		})
	}
	return resp, nil
}

func (s *server) DeleteRange(_ context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted = append(s.deleted, string(r.Key))
	return &pb.DeleteRangeResponse{Header: &pb.ResponseHeader{}}, nil
}

func (s *server) locker(t *testing.T, opts *etcdlock.Options) *etcdlock.Locker {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	pb.RegisterMaintenanceServer(g, s)
	pb.RegisterLeaseServer(g, s)
	pb.RegisterKVServer(g, s)
	var serving sync.WaitGroup
	serving.Go(func() { g.Serve(ln) })
	t.Cleanup(func() {
		g.Stop()
		serving.Wait()
	})
	l, err := etcdlock.Dial("etcd://"+ln.Addr().String(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

// soon ends a call that would hang if the code were wrong.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
