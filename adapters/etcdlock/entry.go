package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/locks"
)

// entry is one key in a lock's queue, from before it is created until it is
// known to be gone or its session looks after it.
type entry struct {
	s      *session
	name   string
	holder string
	key    key // no other entry's, from enter to leave
	number int // the key's

	// foreign: somebody else's key has this name.
	foreign bool

	// unanswered counts the create requests of which nothing is known: etcd
	// may carry them out later.
	unanswered int

	gone chan struct{} // closed when the key is no longer in etcd, while waiting

	// Guarded by s.mu.
	rev     int64 // the create revision, 0 before it is known
	control *locks.Control
	lost    error
}

// taken is what a create request came to.
type taken struct {
	rev     int64  // of the entry; 0 if it was not created
	before  key    // an entry before it; the zero key if it is the first
	holder  string // of before, if the entry was not created
	cluster uint64 // the cluster's id
	err     error
}

// take creates the entry's key, behind all others (wait) or only if there is no
// other. It is idempotent, and sent again while etcd gives no answer and ctx
// lasts.
func (e *entry) take(ctx context.Context, wait bool) *taken {
	for {
		resp, err := e.create(ctx, wait)
		switch {
		case err == nil:
			return e.read(resp)
		case leaseGone(err):
			e.s.end(err, true)
			return &taken{err: errAgain}
		case !unanswered(err):
			return &taken{err: err}
		}
		e.unanswered++
		if ctx.Err() != nil || !sleep(ctx, retryPause) {
			return &taken{err: err}
		}
	}
}

// create sends one request. The answer begins with the put and the last entry
// before it, or with the own key and the first entry.
func (e *entry) create(ctx context.Context, wait bool) (*clientv3.TxnResponse, error) {
	k, queue := string(e.key), e.key.queue()
	put := clientv3.OpPut(k, e.holder, clientv3.WithLease(e.s.id))
	own := clientv3.OpGet(k)
	if !wait {
		return e.s.client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(queue).WithPrefix(), "=", 0)).
			Then(put).
			Else(own, clientv3.OpGet(queue, clientv3.WithFirstCreate()...)).
			Commit()
	}
	// Read before the put, so that it is not the last entry itself.
	last := clientv3.OpGet(queue, append(clientv3.WithLastCreate(), clientv3.WithKeysOnly())...)
	return e.s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(k), "=", 0)).
		Then(last, put).
		Else(own, clientv3.OpGet(queue, clientv3.WithFirstCreate()...)).
		Commit()
}

func (e *entry) read(resp *clientv3.TxnResponse) *taken {
	t := &taken{cluster: resp.Header.ClusterId}
	var other []*mvccpb.KeyValue
	if resp.Succeeded {
		t.rev = resp.Header.Revision
		other = resp.Responses[0].GetResponseRange().GetKvs()
	} else {
		own := resp.Responses[0].GetResponseRange().Kvs
		other = resp.Responses[1].GetResponseRange().Kvs
		switch {
		case len(own) == 0:
		case string(own[0].Value) == e.holder:
			// An earlier copy of this request made it.
			t.rev = own[0].CreateRevision
			e.unanswered = max(e.unanswered-1, 0)
		default:
			e.foreign = true
		}
	}
	if len(other) > 0 && (e.foreign || string(other[0].Key) != string(e.key)) {
		t.before, t.holder = key(other[0].Key), string(other[0].Value)
	}
	e.s.mu.Lock()
	e.rev = t.rev
	e.s.mu.Unlock()
	return t
}

// errNotThere is the answer to a look for an entry that is gone.
var errNotThere = errors.New("its key was deleted or overwritten")

// untouched reports whether the key is there as it was created. Put again by
// hand it may hang on another lease, which a read without values does not tell.
func (e *entry) untouched(own []*mvccpb.KeyValue) bool {
	return len(own) == 1 && own[0].CreateRevision == e.rev && own[0].ModRevision == e.rev
}

// look returns the entry before this one in the queue, or the zero key, or
// errNotThere.
func (e *entry) look(ctx context.Context) (key, error) {
	before := append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(e.rev-1), clientv3.WithKeysOnly())
	resp, err := e.s.client.Txn(ctx).Then(
		clientv3.OpGet(string(e.key), clientv3.WithKeysOnly()),
		clientv3.OpGet(e.key.queue(), before...),
	).Commit()
	if err != nil {
		return "", err
	}
	own := resp.Responses[0].GetResponseRange().Kvs
	if !e.untouched(own) {
		return "", errNotThere
	}
	if prev := resp.Responses[1].GetResponseRange().Kvs; len(prev) > 0 {
		return key(prev[0].Key), nil
	}
	return "", nil
}

// delete removes the entry's key if it is the one with create revision rev, and
// reports whether it was there. It is sent again while etcd gives no answer and
// ctx lasts.
func (e *entry) delete(ctx context.Context, rev int64) (bool, error) {
	for again := false; ; again = true {
		there, err := e.deleteIf(ctx, rev)
		if err == nil {
			// Sent again, it has found its own work done.
			return there || again, nil
		}
		if !unanswered(err) || ctx.Err() != nil || !sleep(ctx, retryPause) {
			return false, err
		}
	}
}

// deleteIf sends one request.
func (e *entry) deleteIf(ctx context.Context, rev int64) (there bool, err error) {
	resp, err := e.s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(string(e.key)), "=", rev)).
		Then(clientv3.OpDelete(string(e.key))).
		Commit()
	if err != nil {
		return false, err
	}
	return resp.Succeeded, nil
}

// release is Grant.Release.
func (e *entry) release(ctx context.Context) error {
	there, err := e.delete(ctx, e.rev)
	if err != nil {
		e.s.retire()
		return e.s.failure("release", e.name, err)
	}
	if !there {
		return &locks.Error{Op: "release", Name: e.name, Kind: locks.ErrLost, Err: errNotThere}
	}
	return nil
}

// settled is Grant.Settled.
func (e *entry) settled(err error) {
	if err != nil {
		e.s.orphan(e)
	}
	e.s.leave(e)
}

// remove deletes the key of an entry that no lease was made of. It tries for a
// lease time, then leaves the rest to the session.
func (e *entry) remove() {
	defer e.s.leave(e)
	err := e.removeOnce()
	start, pause := time.Now(), retryPause
	for err != nil && locks.Elapsed(start) < e.s.opts.ttl() && e.s.exists() {
		e.s.retire()
		e.s.log.Warn("etcdlock: cleanup", "key", e.key, "error", err)
		time.Sleep(pause)
		pause = min(2*pause, time.Second)
		err = e.removeOnce()
	}
	if err != nil || e.unanswered > 0 {
		e.s.orphan(e)
	}
}

// removeOnce compares before it deletes, because another entry may have the key
// when a copy of the request arrives late. Without an answer to create it cannot;
// the key is then never used again.
func (e *entry) removeOnce() error {
	if e.rev == 0 && e.unanswered == 0 || !e.s.exists() {
		return nil
	}
	ctx, cancel := e.s.detached()
	defer cancel()
	var err error
	if e.unanswered > 0 {
		_, err = e.s.client.Delete(ctx, string(e.key))
	} else {
		_, err = e.deleteIf(ctx, e.rev)
	}
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// adopt hands the entry's fate to the lease that was made of it.
func (e *entry) adopt(control locks.Control) {
	e.s.mu.Lock()
	e.control = &control
	sent, lost := e.s.sent, e.lost
	e.s.mu.Unlock()
	if lost != nil {
		control.Lose(lost)
		return
	}
	control.Renewed(sent) // a renewal may have come between
}

// lose says that etcd no longer has the entry.
func (e *entry) lose(reason error) {
	e.s.mu.Lock()
	control := e.control
	if e.lost == nil {
		e.lost = reason
		close(e.gone)
	}
	e.s.mu.Unlock()
	if control != nil {
		control.Lose(reason)
	}
}
