package boltfile_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// TestNumberOfWritesOfACommitIsKnown: by it a failed write of the meta page is
// told from one of a data page. bbolt counts one write for each node, one for the
// list of free pages and one for the meta page.
func TestNumberOfWritesOfACommitIsKnown(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("one")})
	for n := range 60 {
		tx, err := f.Begin(true)
		if err != nil {
			t.Fatal(err)
		}
		b := tx.Bucket(bucket)
		for range rnd.IntN(100) {
			key := []byte(fmt.Sprint(rnd.IntN(2000)))
			if rnd.IntN(3) == 0 || n > 40 {
				err = b.Delete(key)
			} else {
				err = b.Put(key, make([]byte, 1<<rnd.IntN(16)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Commit(tx); err != nil {
			t.Fatal(err)
		}
		did := tx.Stats()
		if got, want := did.GetWrite(), did.GetSpill()+2; got != want {
			t.Fatalf("commit %d made %d writes, want %d: of nodes, free pages and the meta page", n, got, want)
		}
	}
}
