package boltfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// makeBolt makes a file of the given page size with plain bbolt.
func makeBolt(t *testing.T, path string, pageSize int) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(filled("made")); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// manyPages makes a closed file of some fifty pages, a third of them free.
func manyPages(t *testing.T) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s.db")
	f := open(t, path, boltfile.Options{Init: filled("one")})
	for _, drop := range []bool{false, true} {
		err := f.Update(func(tx *bolt.Tx) error {
			for i := range 300 {
				k := []byte(fmt.Sprintf("key-%04d", i))
				if !drop {
					tx.Bucket(bucket).Put(k, bytes.Repeat(k, 60))
				} else if i%3 == 0 {
					tx.Bucket(bucket).Delete(k)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	closeFile(t, f)
	return path, readFile(t, path)
}

// wantLockFree checks that nobody in this process or another is kept out.
func wantLockFree(t *testing.T, path string, sound []byte) {
	t.Helper()
	writeFile(t, path, sound)
	f, err := boltfile.Open(path, boltfile.Options{Timeout: time.Nanosecond})
	if err != nil {
		t.Fatalf("the repaired file cannot be opened: %v", err)
	}
	closeFile(t, f)
	if err := start(t, "open", path).end(); err != nil {
		t.Fatalf("another process cannot open the repaired file: %v", err)
	}
}

func TestFileCutShortIsAnErrorAndFreesItsLock(t *testing.T) {
	path, sound := manyPages(t)
	cur, _ := metas(t, sound)
	step := 0
	for n := 0; n < cur.pages*cur.pageSize; n += 1 + step {
		step = n/8 + 37
		writeFile(t, path, sound[:n])
		_, err := boltfile.Open(path, boltfile.Options{Timeout: time.Nanosecond})
		if !errors.Is(err, boltfile.ErrCorrupt) && !errors.Is(err, boltfile.ErrFormat) {
			t.Errorf("cut to %d of %d bytes: got %v, want ErrCorrupt or ErrFormat", n, len(sound), err)
		}
		if n > 0 && n >= cur.pageSize && !errors.Is(err, boltfile.ErrCorrupt) {
			t.Errorf("cut to %d bytes, a meta page whole: got %v, want ErrCorrupt", n, err)
		}
	}
	wantLockFree(t, path, sound)
}

func TestDamagedFreeListIsErrCorruptAndFreesTheLock(t *testing.T) {
	path, sound := manyPages(t)
	cur, _ := metas(t, sound)
	at, ne := cur.freelist*cur.pageSize, binary.NativeEndian
	if count := ne.Uint16(sound[at+10:]); count < 5 {
		t.Fatalf("the free list has %d entries, the test needs some", count)
	}
	for name, spoil := range map[string]func(b []byte){
		"another page's number": func(b []byte) { ne.PutUint64(b, 99) },
		"another type":          func(b []byte) { ne.PutUint16(b[8:], 2) },
		"count past the page":   func(b []byte) { ne.PutUint16(b[10:], 60000) },
		"count past memory": func(b []byte) {
			ne.PutUint16(b[10:], 0xFFFF)
			ne.PutUint64(b[16:], 1<<45)
		},
		"negative count": func(b []byte) {
			ne.PutUint16(b[10:], 0xFFFF)
			ne.PutUint64(b[16:], 1<<63)
		},
		"overflow past the end": func(b []byte) { ne.PutUint32(b[12:], 1<<30) },
		"a meta page free":      func(b []byte) { ne.PutUint64(b[16:], 1) },
		"a page past the end":   func(b []byte) { ne.PutUint64(b[24:], 1<<40) },
		"a page twice":          func(b []byte) { copy(b[24:32], b[16:24]) },
		"the root free":         func(b []byte) { ne.PutUint64(b[16:], uint64(cur.root)) },
		"the root free, in its place": func(b []byte) {
			// Among the numbers, which rise, the root takes the place of its neighbour.
			last := int(ne.Uint16(b[10:])) - 1
			i := 0
			for i < last && ne.Uint64(b[16+8*i:]) < uint64(cur.root) {
				i++
			}
			ne.PutUint64(b[16+8*i:], uint64(cur.root))
		},
		"random": func(b []byte) { copy(b[16:64], "forty-eight bytes that are no page numbers at all") },
	} {
		content := bytes.Clone(sound)
		spoil(content[at:])
		writeFile(t, path, content)
		_, err := boltfile.Open(path, boltfile.Options{Timeout: time.Nanosecond})
		if !errors.Is(err, boltfile.ErrCorrupt) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want ErrCorrupt with the path", name, err)
		}
	}
	wantLockFree(t, path, sound)
}

func TestRandomDamageIsNeverAPanicAndNeverKeepsTheLock(t *testing.T) {
	path, sound := manyPages(t)
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("BOLTFILE_TEST_SEED"); s != "" {
		fmt.Sscan(s, &seed)
	}
	t.Logf("BOLTFILE_TEST_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	cur, _ := metas(t, sound)
	opened, found := 0, 0
	for range 60 {
		content := bytes.Clone(sound)
		for range 1 + rnd.IntN(3) {
			at := rnd.IntN(cur.pages) * cur.pageSize
			for i := range 16 + rnd.IntN(cur.pageSize-16) {
				content[at+i] = byte(rnd.Uint32())
			}
		}
		writeFile(t, path, content)
		f, err := boltfile.Open(path, boltfile.Options{Timeout: time.Nanosecond})
		if err == nil {
			opened++
			err = useAll(f)
			f.Close()
		}
		if err != nil {
			found++
		}
		if err != nil && !errors.Is(err, boltfile.ErrCorrupt) && !errors.Is(err, boltfile.ErrFormat) &&
			!errors.Is(err, errMissing) {
			t.Errorf("got %v, want ErrCorrupt or ErrFormat", err)
		}
	}
	if opened == 0 || found < opened/4 {
		t.Errorf("%d files opened, damage found in %d: the test does not reach what it is for", opened, found)
	}
	wantLockFree(t, path, sound)
}

var errMissing = errors.New("bucket missing")

// useAll reads everything and writes through it.
func useAll(f *boltfile.File) error {
	read := f.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		if b == nil {
			return errMissing
		}
		sum := 0
		b.ForEach(func(k, v []byte) error {
			sum += len(bytes.Clone(k)) + len(bytes.Clone(v))
			return nil
		})
		return nil
	})
	write := f.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		if b == nil {
			return errMissing
		}
		for i := range 300 {
			if err := b.Put([]byte(fmt.Sprintf("key-%04d", i)), []byte("new")); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(read, write)
}
