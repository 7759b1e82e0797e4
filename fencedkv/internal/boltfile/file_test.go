package boltfile_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

func TestReadersAndWritersRunTogether(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("one")})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				if err := put(f, fmt.Sprint(w, "-", i), "v"); err != nil {
					t.Errorf("Update: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				if v, err := get(f, "id"); err != nil || v != "one" {
					t.Errorf("View: %q, %v", v, err)
				}
			}
		})
	}
	wg.Wait()
	for w := range 4 {
		for i := range 10 {
			wantValue(t, f, fmt.Sprint(w, "-", i), "v")
		}
	}
}

func TestUpdateThatFailsChangesNothingAndLetsTheNextIn(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("one")})
	boom := errors.New("boom")
	write := func(tx *bolt.Tx) { tx.Bucket(bucket).Put([]byte("id"), []byte("two")) }
	if err := f.Update(func(tx *bolt.Tx) error { write(tx); return boom }); err != boom {
		t.Errorf("got %v, want the function's error", err)
	}
	if err := f.Update(func(tx *bolt.Tx) error { write(tx); panic(boom) }); !errors.Is(err, boltfile.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Update(func(tx *bolt.Tx) error { write(tx); runtime.Goexit(); return nil })
	}()
	<-done
	wantValue(t, f, "id", "one")
	mustPut(t, f, "k", "v")
}

func TestTransactionIsEndedOnce(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("one")})
	for _, writable := range []bool{false, true} {
		tx, err := f.Begin(writable)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := f.Rollback(tx); err != nil {
				t.Errorf("Rollback, writable %v: %v", writable, err)
			}
		}
	}
	tx, err := f.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(tx); err != nil {
		t.Fatal(err)
	}
	if err := f.Rollback(tx); err != nil {
		t.Errorf("Rollback after Commit: %v", err)
	}
	if err := f.Commit(tx); err == nil {
		t.Error("a second Commit succeeded")
	}
	mustPut(t, f, "k", "v")
}

func TestAfterCloseThereIsNoTransaction(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("one")})
	closeFile(t, f)
	for _, writable := range []bool{false, true} {
		for range 2 {
			if tx, err := f.Begin(writable); err == nil || errors.Is(err, boltfile.ErrCorrupt) {
				t.Errorf("Begin(%v) after Close: %v, %v; want an error that is not ErrCorrupt", writable, tx, err)
			}
		}
	}
}

func BenchmarkView(b *testing.B) {
	f, err := boltfile.Open(filepath.Join(b.TempDir(), "s.db"), boltfile.Options{Init: filled("one")})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	read := func(tx *bolt.Tx) error { tx.Bucket(bucket).Get([]byte("id")); return nil }
	for name, view := range map[string]func(func(*bolt.Tx) error) error{"boltfile": f.View, "bbolt": f.DB().View} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := view(read); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
