package fencedkv_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// open opens a new store in a directory of the test. When the test ends it
// checks every record, the digest and bbolt's pages.
func open(t testing.TB, o *fencedkv.Options) *fencedkv.Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "store.db"), o)
}

func openAt(t testing.TB, path string, o *fencedkv.Options) *fencedkv.Store {
	t.Helper()
	s, err := fencedkv.Open(path, o)
	if err != nil {
		t.Fatalf("Open(%s): %v", path, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		checkFile(t, path)
	})
	return s
}

func checkFile(t testing.TB, path string) {
	t.Helper()
	s, err := fencedkv.Open(path, nil)
	if err != nil {
		t.Errorf("Open for the check: %v", err)
		return
	}
	if err := s.Check(context.Background()); err != nil {
		t.Errorf("Check: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close after the check: %v", err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 5 * time.Second, PreLoadFreelist: true})
	if err != nil {
		t.Errorf("bbolt.Open: %v", err)
		return
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("bbolt check: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("bbolt View: %v", err)
	}
}

// noContext is what a caller passes who forgot the context.
var noContext context.Context

func b(s string) []byte { return []byte(s) }

func token(n uint64, holder string) fence.Token {
	return fence.Token{Lineage: "lock/a@1", Seq: n, Holder: holder}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantIs(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want one over %v", err, want)
	}
}

func wantValue(t testing.TB, r *fencedkv.Resource, key, want string) {
	t.Helper()
	got, err := r.Get(t.Context(), b(key))
	if err != nil || !bytes.Equal(got, b(want)) {
		t.Fatalf("Get(%q) = %q, %v, want %q", key, got, err, want)
	}
}

func wantNone(t testing.TB, r *fencedkv.Resource, key string) {
	t.Helper()
	if got, err := r.Get(t.Context(), b(key)); !errors.Is(err, fencedkv.ErrNotFound) {
		t.Fatalf("Get(%q) = %q, %v, want ErrNotFound", key, got, err)
	}
}

func wantMark(t testing.TB, r *fencedkv.Resource, want fence.Token) {
	t.Helper()
	got, err := r.Highest(t.Context())
	if err != nil || got.Token != want {
		t.Fatalf("Highest() = %v, %v, want %v", got, err, want)
	}
}
