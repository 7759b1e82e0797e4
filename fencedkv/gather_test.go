package fencedkv_test

import (
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// TestBatchesAreFull: writers that were woken by a commit are in the next one, and
// not in the one after it, for which the first of them to come back would make all
// others wait. The time of the commit is not real.
func TestBatchesAreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers, puts = 32, 20
		commits := 0
		s, err := fencedkv.OpenCommit(filepath.Join(t.TempDir(), "s.db"), nil, func(tx *bbolt.Tx) error {
			commits++
			time.Sleep(time.Second) // the others queue
			return tx.Commit()
		})
		must(t, err)
		defer s.Close()
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range puts {
					if err := s.Resource("r").Put(t.Context(), token(1, ""), b("k"), b("v")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if mean := float64(writers*puts) / float64(commits); mean < writers*5/8 {
			t.Errorf("%d commits of %.1f requests in the mean, want more than 5/8 of %d", commits, mean, writers)
		} else {
			t.Logf("%.1f requests in the mean", mean)
		}
	})
}
