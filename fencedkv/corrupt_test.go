package fencedkv_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// raw changes a closed store with bbolt alone.
func raw(t *testing.T, path string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	must(t, err)
	must(t, db.Update(fn))
	must(t, db.Close())
}

// filled makes a store of n resources r0000, r0001, ..., of which every second
// has a key, and closes it.
func filled(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s.db")
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	var claims []fencedkv.Claim
	for i := range n {
		claims = append(claims, fencedkv.Claim{Resource: rname(i), Token: token(uint64(i+1), "h")})
	}
	must(t, s.Update(t.Context(), claims, func(_ context.Context, mtx *fencedkv.MultiTx) error {
		for i := 0; i < n; i += 2 {
			tx, err := mtx.Resource(rname(i))
			must(t, err)
			must(t, tx.Put(b("key"), b("value of "+rname(i))))
		}
		return nil
	}))
	must(t, s.Close())
	return path
}

func rname(i int) string { return fmt.Sprintf("r%04d", i) }

func rprefix(name string) []byte { return append([]byte{0, byte(len(name))}, name...) }

func rkey(name string) []byte { return append(rprefix(name), "key"...) }

func wantCorrupt(t *testing.T, err error, kind, resource, key string) {
	t.Helper()
	var c *fencedkv.CorruptError
	if !errors.Is(err, fencedkv.ErrCorrupt) || !errors.As(err, &c) {
		t.Fatalf("got %v, want a *CorruptError", err)
	}
	if c.Kind != kind || c.Resource != resource || string(c.Key) != key || c.Path == "" || !strings.Contains(c.Error(), c.Path) {
		t.Fatalf("got %+v, want path, kind %q, resource %q, key %q", c, kind, resource, key)
	}
}

// damaged opens a store with more marks and values than Open compares, after fn.
func damaged(t *testing.T, fn func(tx *bbolt.Tx) error) *fencedkv.Store {
	t.Helper()
	path := filled(t, 2200)
	raw(t, path, fn)
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestDamagedValueIsAnError(t *testing.T) {
	s := damaged(t, func(tx *bbolt.Tx) error {
		record := bytes.Clone(tx.Bucket([]byte("data")).Get(rkey("r0100")))
		record[len(record)-1] ^= 1
		return tx.Bucket([]byte("data")).Put(rkey("r0100"), record)
	})
	r := s.Resource("r0100")
	_, err := r.Get(t.Context(), b("key"))
	wantCorrupt(t, err, "value", "r0100", "key")
	err = r.Update(t.Context(), token(5000, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		return scanError(tx.Scan(fencedkv.Range{}))
	})
	wantCorrupt(t, err, "value", "r0100", "key")
	wantCorrupt(t, s.Check(t.Context()), "value", "r0100", "key")
	// The others are as they were, and a new value repairs this one.
	wantValue(t, s.Resource("r0102"), "key", "value of r0102")
	must(t, r.Put(t.Context(), token(101, "h"), b("key"), b("new")))
	wantValue(t, r, "key", "new")
}

func TestMovedValueIsAnError(t *testing.T) {
	s := damaged(t, func(tx *bbolt.Tx) error {
		data := tx.Bucket([]byte("data"))
		return data.Put(rkey("r0100"), bytes.Clone(data.Get(rkey("r0102"))))
	})
	_, err := s.Resource("r0100").Get(t.Context(), b("key"))
	wantCorrupt(t, err, "value", "r0100", "key")
}

func TestMissingValueIsNotBelieved(t *testing.T) {
	for _, under := range []string{"r0100kex", "r0100key\x00"} {
		s := damaged(t, func(tx *bbolt.Tx) error {
			data := tx.Bucket([]byte("data"))
			record := bytes.Clone(data.Get(rkey("r0100")))
			if err := data.Delete(rkey("r0100")); err != nil {
				return err
			}
			return data.Put(append([]byte{0, 5}, under...), record)
		})
		_, err := s.Resource("r0100").Get(t.Context(), b("key"))
		wantCorrupt(t, err, "value", "r0100", under[5:])
	}
}

func TestRecordThatIsABucketIsAnError(t *testing.T) {
	s := damaged(t, func(tx *bbolt.Tx) error {
		for bucket, key := range map[string][]byte{"data": rkey("r0100"), "marks": []byte("r0101")} {
			if err := tx.Bucket([]byte(bucket)).Delete(key); err != nil {
				return err
			}
			if _, err := tx.Bucket([]byte(bucket)).CreateBucket(key); err != nil {
				return err
			}
		}
		return nil
	})
	r := s.Resource("r0100")
	_, err := r.Get(t.Context(), b("key"))
	wantCorrupt(t, err, "value", "r0100", "key")
	wantCorrupt(t, r.Put(t.Context(), token(101, "h"), b("key"), b("v")), "value", "r0100", "key")
	wantCorrupt(t, r.Delete(t.Context(), token(101, "h"), b("key")), "value", "r0100", "key")
	wantCorrupt(t, s.Resource("r0101").Raise(t.Context(), token(5000, "h")), "mark", "r0101", "")
}

func TestLostCommitIsAcceptedOnlyByOption(t *testing.T) {
	path := filled(t, 3)
	// The next commit goes to the other meta page; then that page is damaged.
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	must(t, s.Resource("r0000").Raise(t.Context(), token(500, "h")))
	must(t, s.Close())
	file, err := os.ReadFile(path)
	must(t, err)
	page := os.Getpagesize()
	newest := 0
	if binary.NativeEndian.Uint64(file[16+48:]) < binary.NativeEndian.Uint64(file[page+16+48:]) {
		newest = page
	}
	file[newest+16+48] ^= 1 // its transaction id
	must(t, os.WriteFile(path, file, 0o600))

	_, err = fencedkv.Open(path, nil)
	wantCorrupt(t, err, "file", "", "")
	for range 2 { // once accepted the file is sound
		s, err = fencedkv.Open(path, &fencedkv.Options{AcceptLostCommit: true})
		must(t, err)
		wantMark(t, s.Resource("r0000"), token(1, "h"))
		must(t, s.Close())
	}
	raw(t, path, func(tx *bbolt.Tx) error {
		h, err := engine.DecodeHeader(tx.Bucket([]byte("fencedkv")).Get([]byte("header")))
		if err != nil || h.LostCommits != 1 || time.Since(h.LastLost) > time.Hour {
			t.Errorf("header %+v, %v, want one lost commit, just now", h, err)
		}
		return nil
	})
	checkFile(t, path)
}

func TestDamagedMarkIsAnError(t *testing.T) {
	s := damaged(t, func(tx *bbolt.Tx) error {
		record := bytes.Clone(tx.Bucket([]byte("marks")).Get([]byte("r0100")))
		record[len(record)-1] ^= 1
		return tx.Bucket([]byte("marks")).Put([]byte("r0100"), record)
	})
	r := s.Resource("r0100")
	_, err := r.Highest(t.Context())
	wantCorrupt(t, err, "mark", "r0100", "")
	for name, write := range writers(r, s) {
		err := write(t.Context(), token(5000, ""))
		if !errors.Is(err, fencedkv.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
	var list error
	for _, err := range s.Resources(t.Context()) {
		list = errors.Join(list, err)
	}
	wantCorrupt(t, list, "mark", "r0100", "")
}

func TestMissingMarkIsNotBelieved(t *testing.T) {
	hide := func(tx *bbolt.Tx, name, under string) error {
		marks := tx.Bucket([]byte("marks"))
		record := bytes.Clone(marks.Get([]byte(name)))
		if err := marks.Delete([]byte(name)); err != nil || under == "" {
			return err
		}
		return marks.Put([]byte(under), record)
	}
	refused := func(t *testing.T, s *fencedkv.Store, name string) {
		t.Helper()
		r := s.Resource(name)
		if m, err := r.Highest(t.Context()); !errors.Is(err, fencedkv.ErrCorrupt) {
			t.Errorf("Highest = %v, %v, want ErrCorrupt", m, err)
		}
		for how, write := range writers(r, s) {
			if err := write(t.Context(), token(1, "stale")); !errors.Is(err, fencedkv.ErrCorrupt) {
				t.Errorf("%s with a stale token: got %v, want ErrCorrupt", how, err)
			}
		}
	}
	t.Run("its resource holds data", func(t *testing.T) {
		refused(t, damaged(t, func(tx *bbolt.Tx) error { return hide(tx, "r0100", "") }), "r0100")
	})
	// A damaged name is a neighbour of the place. bbolt sorts what is put, so
	// only names that stay in their place can be made this way; tests/damage
	// makes the others.
	for _, under := range []string{"r0100~", "r0101\x00"} {
		t.Run("it is now under "+under, func(t *testing.T) {
			refused(t, damaged(t, func(tx *bbolt.Tx) error { return hide(tx, "r0101", under) }), "r0101")
		})
	}
	t.Run("all are missing, and Open compares none", func(t *testing.T) {
		refused(t, damaged(t, func(tx *bbolt.Tx) error {
			if err := tx.DeleteBucket([]byte("marks")); err != nil {
				return err
			}
			_, err := tx.CreateBucket([]byte("marks"))
			return err
		}), "r0101") // it holds no data
	})
	t.Run("all are missing", func(t *testing.T) {
		path := filled(t, 3)
		raw(t, path, func(tx *bbolt.Tx) error {
			for i := range 3 {
				if err := hide(tx, rname(i), ""); err != nil {
					return err
				}
			}
			return nil
		})
		_, err := fencedkv.Open(path, nil)
		wantCorrupt(t, err, "digest", "", "")
	})
}

func TestMissingMarkIsFoundByItsDigest(t *testing.T) {
	remove := func(tx *bbolt.Tx) error { return tx.Bucket([]byte("marks")).Delete([]byte("r0101")) }
	s := damaged(t, remove) // r0101 holds no data
	wantCorrupt(t, s.Check(t.Context()), "digest", "", "")

	path := filled(t, 200)
	raw(t, path, remove)
	_, err := fencedkv.Open(path, nil) // few marks: Open compares them
	wantCorrupt(t, err, "digest", "", "")
}

func TestMissingValueIsFoundByItsDigest(t *testing.T) {
	remove := func(tx *bbolt.Tx) error { return tx.Bucket([]byte("data")).Delete(rkey("r0100")) }
	s := damaged(t, remove)
	wantCorrupt(t, s.Check(t.Context()), "digest", "", "")

	path := filled(t, 200)
	raw(t, path, remove)
	_, err := fencedkv.Open(path, nil)
	wantCorrupt(t, err, "digest", "", "")
}

func TestValueWithoutAMarkIsFound(t *testing.T) {
	path := filled(t, 3)
	header := func() (h engine.Header) {
		raw(t, path, func(tx *bbolt.Tx) (err error) {
			h, err = engine.DecodeHeader(tx.Bucket([]byte("fencedkv")).Get([]byte("header")))
			return err
		})
		return h
	}
	before := header()
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	must(t, s.Resource("late").Put(t.Context(), token(1, "h"), b("key"), b("v")))
	must(t, s.Close())
	after := header()
	after.Marks = before.Marks // so that all digests are right
	raw(t, path, func(tx *bbolt.Tx) error {
		err := tx.Bucket([]byte("fencedkv")).Put([]byte("header"), after.Encode())
		return errors.Join(err, tx.Bucket([]byte("marks")).Delete([]byte("late")))
	})
	s, err = fencedkv.Open(path, nil)
	must(t, err)
	wantCorrupt(t, s.Check(t.Context()), "mark", "late", "")
	must(t, s.Close())
}

func TestOldValueIsFoundByItsDigest(t *testing.T) {
	path := filled(t, 10)
	var old []byte
	raw(t, path, func(tx *bbolt.Tx) error {
		old = bytes.Clone(tx.Bucket([]byte("data")).Get(rkey("r0002")))
		return nil
	})
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	must(t, s.Resource("r0002").Put(t.Context(), token(3, "h"), b("key"), b("of the same length")))
	must(t, s.Close())
	raw(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("data")).Put(rkey("r0002"), old) })
	_, err = fencedkv.Open(path, nil)
	wantCorrupt(t, err, "digest", "", "")
}

func TestOldMarkIsFoundByItsDigest(t *testing.T) {
	var old []byte
	path := filled(t, 10)
	raw(t, path, func(tx *bbolt.Tx) error {
		old = bytes.Clone(tx.Bucket([]byte("marks")).Get([]byte("r0001")))
		return nil
	})
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	must(t, s.Resource("r0001").Raise(t.Context(), token(99, "h")))
	must(t, s.Close())
	raw(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("marks")).Put([]byte("r0001"), old) })
	_, err = fencedkv.Open(path, nil)
	wantCorrupt(t, err, "digest", "", "")
}

func TestMissingBucketIsAnError(t *testing.T) {
	for _, name := range []string{"fencedkv", "marks", "data"} {
		path := filled(t, 3)
		raw(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(name)) })
		_, err := fencedkv.Open(path, nil)
		wantIs(t, err, fencedkv.ErrCorrupt)
	}
}

func TestPlainBboltFileIsErrFormat(t *testing.T) {
	for _, name := range []string{"mine", "data", "marks"} {
		path := filepath.Join(t.TempDir(), "bolt.db")
		raw(t, path, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte(name)); return err })
		_, err := fencedkv.Open(path, nil)
		wantIs(t, err, fencedkv.ErrFormat)
		if !strings.Contains(err.Error(), path) {
			t.Errorf("%q does not name the file", err)
		}
	}
}

func TestNewerVersionIsErrFormat(t *testing.T) {
	path := filled(t, 3)
	raw(t, path, func(tx *bbolt.Tx) error {
		// A newer version may have any size; only its first 16 bytes are known.
		header := append([]byte("fencedkv\x00\x00\x00\x00\x00\x00\x00\x02"), "what comes is not known"...)
		table := crc32.MakeTable(crc32.Castagnoli)
		sum := crc32.Update(crc32.Checksum(header[:8], table), table, header[12:])
		binary.BigEndian.PutUint32(header[8:], sum)
		return tx.Bucket([]byte("fencedkv")).Put([]byte("header"), header)
	})
	_, err := fencedkv.Open(path, nil)
	wantIs(t, err, fencedkv.ErrFormat)
	if !strings.Contains(err.Error(), "version 2") || !strings.Contains(err.Error(), path) {
		t.Errorf("%q does not name the file and its version", err)
	}
}

func TestDamagedHeaderIsAnError(t *testing.T) {
	path := filled(t, 3)
	raw(t, path, func(tx *bbolt.Tx) error {
		header := bytes.Clone(tx.Bucket([]byte("fencedkv")).Get([]byte("header")))
		header[20] ^= 1
		return tx.Bucket([]byte("fencedkv")).Put([]byte("header"), header)
	})
	_, err := fencedkv.Open(path, nil)
	wantCorrupt(t, err, "header", "", "")
}

func TestHiddenRecordIsNotDeletedUnseen(t *testing.T) {
	s := damaged(t, func(tx *bbolt.Tx) error {
		data := tx.Bucket([]byte("data"))
		record := bytes.Clone(data.Get(rkey("r0100")))
		if err := data.Delete(rkey("r0100")); err != nil {
			return err
		}
		return data.Put(append(rprefix("r0100"), "kez"...), record)
	})
	r := s.Resource("r0100")
	wantIs(t, r.Delete(t.Context(), token(5000, "h"), b("key")), fencedkv.ErrCorrupt)
	wantIs(t, r.Update(t.Context(), token(5000, "h"), func(_ context.Context, tx *fencedkv.Tx) error { return tx.Delete(b("key")) }), fencedkv.ErrCorrupt)
}
