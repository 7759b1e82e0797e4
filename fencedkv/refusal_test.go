package fencedkv_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// TestRefusalByADurableMarkIsOneAllocation: the error. It opens no transaction
// and encodes nothing.
func TestRefusalByADurableMarkIsOneAllocation(t *testing.T) {
	r := open(t, nil).Resource("r")
	must(t, r.Raise(t.Context(), token(2, "b")))
	ctx, stale, key, value := t.Context(), token(1, "a"), b("k"), make([]byte, 100)
	got := testing.AllocsPerRun(100, func() { wantIs(t, r.Put(ctx, stale, key, value), fence.ErrStale) })
	if got > 1 {
		t.Errorf("a refusal takes %v allocations, want 1", got)
	}
}

// TestRefusalSaysTheSameFromMemoryAndFromTheFile: the time of the mark included.
func TestRefusalSaysTheSameFromMemoryAndFromTheFile(t *testing.T) {
	path := t.TempDir() + "/s.db"
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	must(t, s.Resource("r").Raise(t.Context(), token(2, "b")))
	fromMemory := s.Resource("r").Raise(t.Context(), token(1, "a"))
	must(t, s.Close())
	r := openAt(t, path, nil).Resource("r")
	fromFile := r.Raise(t.Context(), token(1, "a"))
	again := r.Raise(t.Context(), token(1, "a"))
	wantIs(t, fromMemory, fence.ErrStale)
	if fromMemory.Error() != fromFile.Error() || again.Error() != fromFile.Error() {
		t.Errorf("one refusal in three ways:\n%v\n%v\n%v", fromMemory, fromFile, again)
	}
}

// TestEveryMarkHoldsBeyondTheCache: with more resources than are kept in memory,
// asked and raised at the same time, no stale token passes and no good one is
// refused.
func TestEveryMarkHoldsBeyondTheCache(t *testing.T) {
	s := open(t, nil)
	const resources = 17_000 // more than are kept
	name := func(i int) string { return "r" + strconv.Itoa(i) }
	claims := make([]fencedkv.Claim, resources)
	for i := range claims {
		claims[i] = fencedkv.Claim{Resource: name(i), Token: token(2, "b")}
	}
	must(t, s.Update(t.Context(), claims, noWrites))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < resources; i += 4 {
				if i%100 < 2 {
					must(t, s.Resource(name(i)).Raise(t.Context(), token(3, "c")))
				}
				wantIs(t, s.Resource(name(resources-1-i)).Raise(t.Context(), token(1, "a")), fence.ErrStale)
				if i%100 < 2 {
					wantIs(t, s.Resource(name(i)).Raise(t.Context(), token(2, "b")), fence.ErrStale)
				}
			}
		})
	}
	wg.Wait()
}

// TestRaiseThatWasNotCommittedRefusesNobody: its mark is not in memory either.
func TestRaiseThatWasNotCommittedRefusesNobody(t *testing.T) {
	var fail atomic.Bool
	s := openCommit(t, func(tx *bbolt.Tx) error {
		if fail.Load() {
			return noRoom(tx)
		}
		return tx.Commit()
	})
	r := s.Resource("r")
	must(t, r.Raise(t.Context(), token(1, "a")))
	fail.Store(true)
	if r.Raise(t.Context(), token(9, "z")) == nil {
		t.Fatal("a raise without room returned nil")
	}
	fail.Store(false)
	must(t, r.Put(t.Context(), token(1, "a"), b("k"), b("v")))
	must(t, r.Put(t.Context(), token(2, "b"), b("k"), b("v")))
}

func BenchmarkRefusal(b *testing.B) {
	b.Run("bolt/view", func(b *testing.B) {
		db := benchBolt(b)
		must(b, db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("data")).Put([]byte("k"), make([]byte, 100)) }))
		for b.Loop() {
			must(b, db.View(func(tx *bbolt.Tx) error {
				_ = append([]byte(nil), tx.Bucket([]byte("data")).Get([]byte("k"))...)
				return nil
			}))
		}
	})
	b.Run("fencedkv", func(b *testing.B) {
		s, err := fencedkv.Open(benchDir(b)+"/store.db", nil)
		must(b, err)
		b.Cleanup(func() { s.Close() })
		r := s.Resource("r")
		must(b, r.Raise(b.Context(), token(2, "b")))
		key, value := []byte("k"), make([]byte, 100)
		for b.Loop() {
			if r.Put(b.Context(), token(1, "a"), key, value) == nil {
				b.Fatal("admitted")
			}
		}
	})
}

func noWrites(context.Context, *fencedkv.MultiTx) error { return nil }
