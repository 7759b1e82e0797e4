package etcdlock_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// A cluster that comes back with older data, here with none, keeps its id and
// numbers from before. Its holders are told, and the store lets nobody in with a
// number that went back.
func TestRevisionsThatWentBackAreToldAndRefused(t *testing.T) {
	t.Parallel()
	srv := servers.StartEtcd(t, nil)
	s := newSite(t, srv.Addr())
	store, err := fencedkv.Open(filepath.Join(t.TempDir(), "accounts.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	account := store.Resource("account")
	opts := s.long()
	opts.TTL = 10 * time.Second // told at a third of it
	l := s.dial(t, s.addr, opts)
	for range 5 {
		bounded.Release(t, bounded.Try(t, l, "a"))
	}
	before := bounded.Try(t, l, "a")
	if err := account.Raise(t.Context(), before.Token()); err != nil {
		t.Fatal(err)
	}

	srv.StartEmpty(t)
	after := bounded.Acquire(t, s.dial(t, s.addr, s.long()), "a")
	if after.Token().Seq >= before.Token().Seq || after.Token().Lineage != before.Token().Lineage {
		t.Fatalf("%v after %v: this etcd has not gone back", after.Token(), before.Token())
	}
	err = account.Put(t.Context(), after.Token(), []byte("balance"), nil)
	if !errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "--bump-revision") {
		t.Errorf("a write with %v: %v, want ErrStale that names --bump-revision", after.Token(), err)
	}
	if err := bounded.Ended(t, before); !errors.Is(err, locks.ErrLost) {
		t.Errorf("the lease that etcd forgot ended with %v, want ErrLost", err)
	}
	bounded.Release(t, after)
}

// The lease that the Locker would use for its next grant has ended unnoticed.
func TestNoGrantHangsOnALeaseThatHasEnded(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l, other := s.dial(t, s.addr, s.long()), s.dial(t, s.addr, s.long())
	for range 3 {
		lease := bounded.Try(t, l, "a")
		dead := s.holder(t, "a").lease
		bounded.Release(t, lease)
		s.revoke(t, entry{lease: dead})
		lease, err := l.Acquire(bounded.Context(t), "a")
		if err != nil {
			t.Fatal(err)
		}
		if e := s.holder(t, "a"); e.lease == dead || e.holder != lease.Token().Holder {
			t.Errorf("the grant %v stands on %+v, and lease %x was revoked", lease.Token(), e, dead)
		}
		if _, err := other.TryAcquire(bounded.Context(t), "a"); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("TryAcquire of another client: %v, want ErrHeld", err)
		}
		bounded.Release(t, lease)
	}
}

// Names are no folders: who has the lower one has nothing of the upper one.
func TestALockDoesNotWaitForNamesBelowIt(t *testing.T) {
	t.Parallel()
	s := shared(t)
	below, l := s.dial(t, s.addr, s.long()), s.dial(t, s.addr, s.long())
	var all []*locks.Lease
	for _, name := range []string{"res/child", "res/", "res/child/", "res%2Fchild", "resource", "res0"} {
		all = append(all, bounded.Try(t, below, name))
	}
	bounded.Release(t, bounded.Try(t, l, "res"))
	bounded.Release(t, bounded.Acquire(t, l, "res"))
	for _, lease := range all {
		bounded.Release(t, lease)
	}
}
