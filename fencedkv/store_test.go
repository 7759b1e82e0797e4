package fencedkv_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func TestStaleTokenIsRefused(t *testing.T) {
	ctx := t.Context()
	s, err := fencedkv.Open(filepath.Join(t.TempDir(), "s.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := s.Resource("accounts/42")
	if err := r.Put(ctx, fence.Number(34), []byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	err = r.Put(ctx, fence.Number(33), []byte("k"), []byte("w"))
	if !errors.Is(err, fence.ErrStale) {
		t.Fatal(err)
	}
	err = r.Update(ctx, fence.Number(35), func(ctx context.Context, tx *fencedkv.Tx) error {
		tx.Put([]byte("l"), []byte("1"))
		for kv, err := range tx.Scan(fencedkv.Range{Reverse: true}) {
			t.Log(string(kv.Key), string(kv.Value), err)
		}
		return r.Raise(ctx, fence.Number(36))
	})
	t.Log(err)
	m, err := r.Highest(ctx)
	t.Log(m, err, s.Check(ctx))
}
