package etcdlock

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// network remembers why requests do not reach etcd, such as a refused
// connection. The client library waits and tries again until the time of the
// request is over, and then tells only that.
type network struct {
	mu  sync.Mutex
	why string // empty if the last answer came from etcd
}

// intercept is a grpc.UnaryClientInterceptor that sees each try.
func (n *network) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch s := status.Convert(err); s.Code() {
	case codes.Unavailable:
		n.why = s.Message()
	case codes.DeadlineExceeded, codes.Canceled:
		// Of a request that no connection was found for, else nothing new.
		if _, why, ok := strings.Cut(s.Message(), "latest balancer error: "); ok {
			n.why = why
		}
	default:
		n.why = ""
	}
	return err
}

// reason is empty for a nil network, that of a client which is not ours.
func (n *network) reason() string {
	if n == nil {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.why
}
