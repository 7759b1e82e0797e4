package fencedkv_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// A program of a later day must read the files of this one.
func TestRecordsAndDigestsOfVersion1AreFixed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	synctest.Test(t, func(t *testing.T) { // where the time is midnight UTC 2000-01-01
		s, err := fencedkv.Open(path, nil)
		must(t, err)
		must(t, s.Resource("accounts/42").Put(t.Context(), token(34, "h~1"), b("balance"), b("100")))
		must(t, s.Close())
	})
	want := map[string]string{
		"marks": "accounts/42 → M\x80f\x16\x81\r#L\xcfRC\x00\x0034@lock/a%401~h%7E1",
		"data":  "\x00\vaccounts/42balance → V\x83\xe9E\xf4100",
	}
	raw(t, path, func(tx *bbolt.Tx) error {
		for bucket, record := range want {
			k, v := tx.Bucket([]byte(bucket)).Cursor().First()
			if got := string(k) + " → " + string(v); got != record {
				t.Errorf("%s: got %q, want %q", bucket, got, record)
			}
		}
		h, err := engine.DecodeHeader(tx.Bucket([]byte("fencedkv")).Get([]byte("header")))
		marks, values := engine.Tally{Count: 1, Digest: 0x7ce008df73d6612}, engine.Tally{Count: 1, Digest: 0x8fb6486f574e8fc}
		if err != nil || h.Marks != marks || h.Values != values {
			t.Errorf("header: got %#v and %#v, %v, want %#v and %#v", h.Marks, h.Values, err, marks, values)
		}
		return nil
	})
}

func TestRepeatedCallsThatChangeNothingWriteNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := openAt(t, path, nil)
	r := s.Resource("r")
	must(t, r.Raise(t.Context(), token(1, "h")))
	before, err := os.ReadFile(path)
	must(t, err)
	must(t, r.Raise(t.Context(), token(1, "h")))
	must(t, r.Delete(t.Context(), token(1, "h"), b("no such key")))
	after, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the file has changed")
	}
}
