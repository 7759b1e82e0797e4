package etcdlock

import (
	"context"
	"fmt"

	"github.com/coreos/go-semver/semver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/locks"
)

// MinVersion is the oldest etcd that the Locker works with. Before it, a leader
// that had lost its quorum answered renewals, after which the next leader freed
// the lock too early (etcd pull request 16822).
const MinVersion = "3.5.13"

// checkVersion asks one member, once per Locker, on the connection there is.
func (l *Locker) checkVersion(ctx context.Context) error {
	l.mu.Lock()
	checked := l.checked
	l.mu.Unlock()
	if checked {
		return nil
	}
	status, err := clientv3.RetryMaintenanceClient(l.client, l.client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return clientv3.ContextError(ctx, err)
	}
	version, err := semver.NewVersion(status.Version)
	if err != nil {
		return unsupported(fmt.Errorf("the server calls its version %q; %s or newer is needed", status.Version, MinVersion))
	}
	if version.LessThan(*semver.New(MinVersion)) {
		return unsupported(fmt.Errorf("the server is etcd %s; %s or newer is needed", version, MinVersion))
	}
	l.mu.Lock()
	l.checked = true
	l.mu.Unlock()
	return nil
}

func unsupported(err error) error {
	return &locks.Error{Op: "acquire", Kind: locks.ErrUnsupported, Err: err}
}
