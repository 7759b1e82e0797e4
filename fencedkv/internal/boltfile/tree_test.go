package boltfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// TestTreeReadsWhatBboltReads compares every move and every answer of a Tree with
// those of bbolt's own cursor, on trees that grow and shrink at random: keys and
// values of all sizes, some of them larger than a page, buckets within a page and
// without, empty ones, and buckets among the records.
func TestTreeReadsWhatBboltReads(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("one")})
	names := [][]byte{bucket, []byte("inline"), []byte("large"), []byte("none")}
	for round := range 40 {
		err := f.Update(func(tx *bolt.Tx) error {
			for i, name := range names[1:3] {
				b, err := tx.CreateBucketIfNotExists(name)
				if err != nil {
					return err
				}
				if err := change(rnd, b, i*300, round%4 == 3); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = f.View(func(tx *bolt.Tx) error {
			root, err := f.Base(tx)
			if err != nil {
				return err
			}
			compare(t, rnd, root, tx.Cursor())
			for _, name := range names {
				tree, found, err := root.Bucket(name)
				b := tx.Bucket(name)
				if err != nil || found != (b != nil) {
					t.Fatalf("Bucket(%s): found %v, %v; want %v", name, found, err, b != nil)
				}
				if found {
					compare(t, rnd, tree, b.Cursor())
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func randomKey(rnd *rand.Rand) []byte {
	key := fmt.Appendf(nil, "%0100d", rnd.IntN(1000)) // so long that branches have branches above them
	if rnd.IntN(20) == 0 {
		key = append(key, make([]byte, rnd.IntN(6000))...)
	}
	return key
}

// change puts about n records into a bucket, or takes most of what it has.
func change(rnd *rand.Rand, b *bolt.Bucket, n int, shrink bool) error {
	if shrink {
		var keys [][]byte
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if v != nil && rnd.IntN(10) > 0 {
				keys = append(keys, bytes.Clone(k))
			}
		}
		for _, k := range keys {
			if err := b.Delete(k); err != nil {
				return err
			}
		}
		return nil
	}
	for range rnd.IntN(n + 3) {
		key, size := randomKey(rnd), rnd.IntN(200)
		if rnd.IntN(30) == 0 {
			size = rnd.IntN(20_000)
		}
		err := b.Put(key, bytes.Repeat([]byte{byte(size)}, size))
		if err != nil && !errors.Is(err, berrors.ErrIncompatibleValue) {
			return err
		}
	}
	if n > 0 && rnd.IntN(3) == 0 {
		if _, err := b.CreateBucketIfNotExists(fmt.Appendf(nil, "a bucket %d", rnd.IntN(9))); err != nil {
			return err
		}
	}
	return nil
}

// compare makes the same random moves with both, and walks all records in both
// directions.
func compare(t *testing.T, rnd *rand.Rand, tree boltfile.Tree, want *bolt.Cursor) {
	t.Helper()
	got := tree.Cursor()
	same := func(move string, k, v []byte, err error, wantK, wantV []byte) bool {
		t.Helper()
		if err != nil || !bytes.Equal(k, wantK) || !bytes.Equal(v, wantV) || (k == nil) != (wantK == nil) || (v == nil) != (wantV == nil) {
			t.Fatalf("%s: got %q with %d bytes, %v; want %q with %d bytes", move, k, len(v), err, wantK, len(wantV))
		}
		return k != nil
	}
	check := func(move string, next func() (k, v []byte, err error), wantNext func() (k, v []byte)) bool {
		t.Helper()
		k, v, err := next()
		wantK, wantV := wantNext()
		return same(move, k, v, err, wantK, wantV)
	}
	for more := check("First", got.First, want.First); more; {
		more = check("Next", got.Next, want.Next)
	}
	for more := check("Last", got.Last, want.Last); more; {
		more = check("Prev", got.Prev, want.Prev)
	}
	for range 200 {
		key := randomKey(rnd)
		seek := func() (k, v []byte, err error) { return got.Seek(key) }
		wantK, wantV := want.Seek(key)
		k, v, err := seek()
		there := same(fmt.Sprintf("Seek(%q)", key), k, v, err, wantK, wantV)
		v, found, err := tree.Get(key)
		if isThere := bytes.Equal(wantK, key); err != nil || found != isThere || found && !bytes.Equal(v, wantV) || found && (v == nil) != (wantV == nil) {
			t.Fatalf("Get(%q) = %d bytes, %v, %v; want %d bytes, %v", key, len(v), found, err, len(wantV), isThere)
		}
		for moves := rnd.IntN(4); moves > 0 && there; moves-- {
			if rnd.IntN(2) == 0 {
				there = check("Next after Seek", got.Next, want.Next)
			} else {
				there = check("Prev after Seek", got.Prev, want.Prev)
			}
		}
	}
}

// TestTreeDoesNotFollowACircle has a branch lead to itself, in the file of a State
// that is open.
func TestTreeDoesNotFollowACircle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	f := open(t, path, boltfile.Options{Init: filled("one")})
	err := f.Update(func(tx *bolt.Tx) error {
		for i := range 300 {
			if err := tx.Bucket(bucket).Put(fmt.Appendf(nil, "%0200d", i), nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	file, size := readFile(t, path), f.DB().Info().PageSize
	circles := 0
	for at := 2 * size; at < len(file); at += size {
		const branch, head, child = 1, 16, 8 // the flag, and where the element and its page are
		if binary.NativeEndian.Uint16(file[at+8:]) != branch {
			continue
		}
		circles++
		overwrite(t, path, at+head+child, binary.NativeEndian.AppendUint64(nil, uint64(at/size)))
		first := at + head + int(binary.NativeEndian.Uint32(file[at+head:]))
		key := file[first : first+int(binary.NativeEndian.Uint32(file[at+head+4:]))]
		err := f.View(func(tx *bolt.Tx) error {
			root, err := f.Base(tx)
			if err != nil {
				return err
			}
			tree, _, err := root.Bucket(bucket)
			if err != nil {
				return err
			}
			c := tree.Cursor()
			_, _, get := tree.Get(key)
			_, _, seek := c.Seek(key)
			walk := error(nil)
			for k, _, err := c.First(); ; k, _, err = c.Next() {
				if walk = err; err != nil || k == nil {
					break
				}
			}
			for name, err := range map[string]error{"Get": get, "Seek": seek, "Next": walk} {
				if !errors.Is(err, boltfile.ErrCorrupt) {
					t.Errorf("page %d: %s: got %v, want ErrCorrupt", at/size, name, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, path, at+head+child, file[at+head+child:][:8])
	}
	if circles < 2 {
		t.Fatalf("the tree has %d branches, want more", circles)
	}
}

// overwrite changes a file in place.
func overwrite(t *testing.T, path string, at int, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, int64(at)); err != nil {
		t.Fatal(err)
	}
}
