package fencedkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// benchDir is a directory on the disk of the checkout: a temporary one is often
// in memory.
func benchDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(".", "bench-") //nolint:usetesting // see above
	must(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// benchWriters runs put from n goroutines, b.N times in all.
func benchWriters(b *testing.B, n int, put func(key, value []byte) error) {
	b.Helper()
	left := atomic.Int64{}
	left.Store(int64(b.N))
	value := make([]byte, 100)
	done := make(chan error, n)
	b.ResetTimer()
	for range n {
		go func() {
			for left.Add(-1) >= 0 {
				if err := put([]byte("key"+strconv.Itoa(rand.IntN(100_000))), value); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range n {
		must(b, <-done)
	}
}

func benchBolt(b *testing.B) *bbolt.DB {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(benchDir(b), "bolt.db"), 0o600, nil)
	must(b, err)
	b.Cleanup(func() { db.Close() })
	must(b, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("data"))
		return err
	}))
	return db
}

func BenchmarkPut(b *testing.B) {
	for _, n := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("bolt/writers=%d", n), func(b *testing.B) {
			db := benchBolt(b)
			benchWriters(b, n, func(key, value []byte) error {
				return db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("data")).Put(key, value) })
			})
		})
		b.Run(fmt.Sprintf("fencedkv/writers=%d", n), func(b *testing.B) {
			commits := 0
			s, err := fencedkv.OpenCommit(filepath.Join(benchDir(b), "store.db"), nil,
				func(tx *bbolt.Tx) error { commits++; return tx.Commit() })
			must(b, err)
			r := s.Resource("r")
			ctx := context.Background()
			must(b, r.Raise(ctx, token(7, "holder")))
			b.Cleanup(func() {
				must(b, s.Close())
				b.ReportMetric(float64(b.N)/float64(commits), "puts/commit")
			})
			benchWriters(b, n, func(key, value []byte) error { return r.Put(ctx, token(7, "holder"), key, value) })
		})
	}
}

// benchKeys is how many records the store has that is read.
const benchKeys = 100_000

func benchKey(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }

// benchReaders runs get from n goroutines, b.N times in all.
func benchReaders(b *testing.B, n int, get func(key []byte) error) {
	b.Helper()
	keys := make([][]byte, benchKeys)
	for i := range keys {
		keys[i] = benchKey(i)
	}
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for g := range n {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 0))
			for range b.N / n {
				if err := get(keys[rnd.IntN(benchKeys)]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkGet reads one of many values of 100 bytes, of which it keeps a copy.
func BenchmarkGet(b *testing.B) {
	value := make([]byte, 100)
	db := benchBolt(b)
	must(b, db.Update(func(tx *bbolt.Tx) error {
		for i := range benchKeys {
			if err := tx.Bucket([]byte("data")).Put(benchKey(i), value); err != nil {
				return err
			}
		}
		return nil
	}))
	s, err := fencedkv.Open(filepath.Join(benchDir(b), "store.db"), nil)
	must(b, err)
	b.Cleanup(func() { must(b, s.Close()) })
	ctx, r := context.Background(), s.Resource("r")
	must(b, r.Update(ctx, token(7, "holder"), func(_ context.Context, tx *fencedkv.Tx) error {
		for i := range benchKeys {
			if err := tx.Put(benchKey(i), value); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("bolt/readers=%d", n), func(b *testing.B) {
			benchReaders(b, n, func(key []byte) error {
				return db.View(func(tx *bbolt.Tx) error {
					if bytes.Clone(tx.Bucket([]byte("data")).Get(key)) == nil {
						return fencedkv.ErrNotFound
					}
					return nil
				})
			})
		})
		b.Run(fmt.Sprintf("fencedkv/readers=%d", n), func(b *testing.B) {
			benchReaders(b, n, func(key []byte) error { _, err := r.Get(ctx, key); return err })
		})
	}
	b.Run("fencedkv/mark", func(b *testing.B) {
		benchReaders(b, 1, func([]byte) error { _, err := r.Highest(ctx); return err })
	})
	b.Run("fencedkv/refusal", func(b *testing.B) {
		benchReaders(b, 1, func(key []byte) error {
			if err := r.Put(ctx, token(6, "stale"), key, value); !errors.Is(err, fence.ErrStale) {
				return err
			}
			return nil
		})
	})
}
