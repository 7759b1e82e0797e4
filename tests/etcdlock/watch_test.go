package etcdlock_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/proxy"
)

// deaf is a stream on which no event of a watch arrives.
type deaf struct {
	grpc.ClientStream
	dropped *atomic.Int32
}

func (d deaf) RecvMsg(m any) error {
	for {
		if err := d.ClientStream.RecvMsg(m); err != nil {
			return err
		}
		if resp, ok := m.(*pb.WatchResponse); !ok || len(resp.Events) == 0 {
			return nil
		}
		d.dropped.Add(1)
	}
}

func TestAMissedWatchCostsAtMostALeaseTime(t *testing.T) {
	t.Parallel()
	s := shared(t)
	counter := proxy.CountEtcd(t, s.addr)
	var dropped atomic.Int32
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + counter.Addr()},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				stream, err := open(ctx, desc, conn, method, opts...)
				return deaf{stream, &dropped}, err
			})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	l, err := etcdlock.New(client, s.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bounded.Close(t, l) })
	bounded.Release(t, bounded.Try(t, l, "first use"))
	held := bounded.Try(t, s.dial(t, s.addr, s.long()), "a")
	counter.Reset()
	waiter := s.wait(t, l, "a", 2)
	bounded.Eventually(t, "the read after the watch", func() bool {
		requests := counter.Requests()
		watch := slices.Index(requests, pathWatch)
		return watch >= 0 && slices.Contains(requests[watch:], pathTxn) && counter.Unanswered() == 0
	})
	bounded.Release(t, held)
	bounded.Release(t, bounded.Granted(t, "the waiter", waiter))
	bounded.Eventually(t, "the event that was dropped", func() bool { return dropped.Load() > 0 })
}

// Its entry would keep the old lease alive, and with it what was left there.
func TestAWaiterLeavesARetiredLease(t *testing.T) {
	t.Parallel()
	s := shared(t)
	held := bounded.Try(t, s.dial(t, s.addr, s.long()), "a")
	opts := s.long()
	opts.RequestTimeout = time.Second
	l := s.counted(t, opts)
	x := bounded.Try(t, l, "x")
	waiter := s.waits(t, l, "a", 2)
	old := s.entries(t, "a")[1].lease
	l.Network.BlackHole(t, proxy.Both)
	if err := x.Release(t.Context()); !errors.Is(err, locks.ErrUnreachable) {
		t.Errorf("release in a black hole: %v, want ErrUnreachable", err)
	}
	l.Network.Heal(t)
	bounded.Eventually(t, "an entry on another lease", func() bool {
		all := s.entries(t, "a")
		return len(all) == 2 && all[1].lease != old
	})
	bounded.Eventually(t, "the end of the old lease", func() bool {
		ttl, err := s.direct.TimeToLive(t.Context(), old)
		return err == nil && ttl.TTL == -1
	})
	bounded.Release(t, held)
	bounded.Release(t, bounded.Granted(t, "the waiter", waiter))
}
