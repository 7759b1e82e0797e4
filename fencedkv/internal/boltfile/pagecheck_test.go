package boltfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// TestDeletesFreeOnlyPagesThatWereLookedAt deletes at random from deep trees and
// compares the pages that bbolt replaced with those that the PageCheck has looked
// at. Then it damages one of them, and does the same again.
func TestDeletesFreeOnlyPagesThatWereLookedAt(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	for round := range rounds {
		path := filepath.Join(dir, fmt.Sprint(round))
		keys := deepTree(t, rnd, path)
		f := open(t, path, boltfile.Options{})
		for range 3 {
			before := readFile(t, path)
			rest, gone := split(rnd, keys)
			if len(gone) == 0 {
				break
			}
			freed, unchecked, err := deleteChecked(t, f, path, gone)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if len(unchecked) > 0 {
				t.Fatalf("round %d: bbolt freed pages %d, which were not looked at, when it deleted %d of %d keys", round, unchecked, len(gone), len(keys))
			}
			if len(freed) == 0 {
				break // little is left, so that the bucket is inline
			}
			size := f.DB().Info().PageSize
			for range 2 {
				page := freed[rnd.IntN(len(freed))]
				const overflow = 12
				damaged, at := bytes.Clone(before), int(page)*size+overflow
				binary.NativeEndian.PutUint32(damaged[at:], binary.NativeEndian.Uint32(damaged[at:])+1)
				wantDeletesRefused(t, filepath.Join(dir, "damaged"), damaged, gone)
			}
			keys = rest
		}
		closeFile(t, f)
	}
}

// TestFullPageIsNotTakenForALongerOne damages the size of a page whose last element
// ends with it: bbolt would free the page behind it.
func TestFullPageIsNotTakenForALongerOne(t *testing.T) {
	const size, head, element, overflow = 1024, 16, 16, 12
	path := filepath.Join(t.TempDir(), "store")
	makeBolt(t, path, size)
	f := open(t, path, boltfile.Options{})
	key, value := []byte("k"), make([]byte, size-head-element-1)
	full := func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket(bucket); err != nil {
			return err
		}
		b, err := tx.CreateBucket(bucket)
		if err != nil {
			return err
		}
		return b.Put(key, value)
	}
	page, pages := 0, 0
	look := func(tx *bolt.Tx) error {
		page, pages = int(tx.Bucket(bucket).Root()), int(tx.Size()/size)
		return nil
	}
	for page == 0 || page+1 == pages { // the one behind it would not be of the file
		if err := errors.Join(f.Update(full), f.View(look)); err != nil {
			t.Fatal(err)
		}
	}
	closeFile(t, f)
	content := readFile(t, path)
	at := content[page*size+overflow:]
	if n := binary.NativeEndian.Uint32(at); n != 0 {
		t.Fatalf("the page runs over %d more, want one page", n)
	}
	binary.NativeEndian.PutUint32(at, 1)
	wantDeletesRefused(t, path, content, [][]byte{key})
}

// deepTree makes a file with many levels of branches and returns its keys, which
// are in order.
func deepTree(t *testing.T, rnd *rand.Rand, path string) (keys [][]byte) {
	t.Helper()
	makeBolt(t, path, 1024)
	f := open(t, path, boltfile.Options{})
	longest := []int{20, 100, 250, 600}[rnd.IntN(4)]
	for i := range 100 + rnd.IntN(900) {
		keys = append(keys, fmt.Appendf(nil, "%06d%0*d", i, 1+rnd.IntN(longest), 0))
	}
	order := rnd.Perm(len(keys))
	for some := 1 + rnd.IntN(len(keys)); len(order) > 0; {
		some = min(some, len(order))
		err := f.Update(func(tx *bolt.Tx) error {
			for _, i := range order[:some] {
				if err := tx.Bucket(bucket).Put(keys[i], make([]byte, rnd.IntN(100))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		order = order[some:]
	}
	closeFile(t, f)
	return keys
}

// split takes ranges and single keys out of keys.
func split(rnd *rand.Rand, keys [][]byte) (rest, gone [][]byte) {
	spare := []float64{0, 0.02, 0.1, 0.5}[rnd.IntN(4)] // of a range
	most := 1 + rnd.IntN(max(len(keys)/2, 1))
	for i := 0; i < len(keys); {
		keep := min(rnd.IntN(most), len(keys)-i)
		rest = append(rest, keys[i:i+keep]...)
		i += keep
		for drop := rnd.IntN(most); drop >= 0 && i < len(keys); drop, i = drop-1, i+1 {
			if rnd.Float64() < spare {
				rest = append(rest, keys[i])
			} else {
				gone = append(gone, keys[i])
			}
		}
	}
	rnd.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
	return rest, gone
}

// deleteChecked deletes keys and returns the pages of the bucket that were
// replaced, and those of them that were not looked at.
func deleteChecked(t *testing.T, f *boltfile.File, path string, keys [][]byte) (freed, unchecked []uint64, err error) {
	t.Helper()
	var used map[uint64]bool
	var check *boltfile.PageCheck
	err = f.Update(func(tx *bolt.Tx) error {
		root, err := f.Base(tx)
		if err != nil {
			return err
		}
		tree, _, err := root.Bucket(bucket)
		if err != nil {
			return err
		}
		check = boltfile.NewPageCheck(tree)
		b := tx.Bucket(bucket)
		used = treePages(readFile(t, path), tx.DB().Info().PageSize, uint64(b.Root()))
		for _, k := range keys {
			if err := check.Delete(k); err != nil {
				return err
			}
			if err := b.Delete(k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	err = f.View(func(tx *bolt.Tx) error {
		still := treePages(readFile(t, path), tx.DB().Info().PageSize, uint64(tx.Bucket(bucket).Root()))
		for id := range used {
			if still[id] {
				continue
			}
			freed = append(freed, id)
			if !check.Checked(id) {
				unchecked = append(unchecked, id)
			}
		}
		return nil
	})
	return freed, unchecked, err
}

// treePages returns the pages of a tree.
func treePages(file []byte, size int, root uint64) map[uint64]bool {
	ids := map[uint64]bool{}
	var walk func(id uint64)
	walk = func(id uint64) {
		ids[id] = true
		p := file[int(id)*size:]
		const branch, head, element = 1, 16, 16
		if binary.NativeEndian.Uint16(p[8:]) != branch {
			return
		}
		for i := range int(binary.NativeEndian.Uint16(p[10:])) {
			walk(binary.NativeEndian.Uint64(p[head+element*i+8:]))
		}
	}
	walk(root)
	return ids
}

// wantDeletesRefused checks that damage is found before bbolt writes.
func wantDeletesRefused(t *testing.T, path string, content []byte, keys [][]byte) {
	t.Helper()
	writeFile(t, path, content)
	f := open(t, path, boltfile.Options{})
	defer closeFile(t, f)
	opened := readFile(t, path)
	_, _, err := deleteChecked(t, f, path, keys)
	if _, commit := errors.AsType[*boltfile.CommitError](err); commit || !errors.Is(err, boltfile.ErrCorrupt) {
		t.Fatalf("a size of a page is damaged: got %v, want ErrCorrupt before the commit", err)
	}
	if !bytes.Equal(readFile(t, path), opened) {
		t.Fatal("a transaction that was refused has changed the file")
	}
}
