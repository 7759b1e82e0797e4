package fencedkv_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
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
