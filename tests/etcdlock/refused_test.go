package etcdlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// An error in the middle of an Acquire: etcd refuses the first transaction after
// the one that made the key, then the second, and so on until Acquire makes fewer.
func TestARefusalAtAnyRequestLeavesNothing(t *testing.T) {
	t.Parallel()
	s := shared(t)
	var sent, answered, refuse, met atomic.Int32 // transactions since the waiter came; the one that is refused
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + s.addr},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if method == pathTxn && sent.Add(1) == refuse.Load() {
					met.Add(1)
					return status.Error(codes.PermissionDenied, "etcdserver: permission denied")
				}
				err := call(ctx, method, req, reply, conn, opts...)
				if method == pathTxn {
					answered.Add(1)
				}
				return err
			})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	l, err := etcdlock.New(client, s.long())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bounded.Close(t, l) })
	holder := s.dial(t, s.addr, s.long())
	bounded.Release(t, bounded.Try(t, l, "first use"))

	for n := int32(2); n < 10; n++ {
		held := bounded.Try(t, holder, "a")
		before := met.Load()
		refuse.Store(n)
		sent.Store(0)
		answered.Store(0)
		waiter := bounded.Acquiring(bounded.Context(t), l, "a")
		bounded.Eventually(t, "the refusal, or two transactions: the key, and where it stands", func() bool {
			return met.Load() > before || answered.Load() >= 2
		})
		bounded.Release(t, held)
		r := bounded.Receive(t, "Acquire", waiter)
		refuse.Store(0)
		if met.Load() == before {
			if r.Err != nil || n < 4 {
				t.Fatalf("with transaction %d to be refused Acquire returned %v after fewer", n, r.Err)
			}
			bounded.Release(t, r.Lease)
			return
		}
		if r.Err == nil || !strings.Contains(r.Err.Error(), "permission denied") {
			t.Errorf("transaction %d was refused: Acquire returned %v, want an error that says so", n, r.Err)
		}
		bounded.Eventually(t, "nothing is left", func() bool { return len(s.entries(t, "a")) == 0 })
	}
	t.Error("Acquire never came to its end without a refusal")
}
