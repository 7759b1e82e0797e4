package contestant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/tests/benchstore/contestant"
)

const (
	keys    = 200
	workers = 8
)

func key(i int) contestant.Key {
	return contestant.NewKey(fmt.Sprintf("accounts/%02d", i/10), fmt.Sprintf("key-%d", i%10))
}

func value(i, generation int) []byte { return fmt.Appendf(nil, "%d of %d", i, generation) }

// TestWritesAreThereAfterReopening: what a contestant was loaded with, and what
// many writers put over it, is what the file holds.
func TestWritesAreThereAfterReopening(t *testing.T) {
	for _, c := range contestant.All {
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, c.Open, dir)
			var pairs []contestant.Pair
			for i := range keys {
				pairs = append(pairs, contestant.Pair{Key: key(i), Value: value(i, 1)})
			}
			if err := s.Load(t.Context(), pairs); err != nil {
				t.Fatalf("load: %v", err)
			}
			var writers sync.WaitGroup
			for w := range workers {
				writers.Go(func() {
					for i := w; i < keys/2; i += workers {
						if err := s.Put(context.Background(), key(i), value(i, 2)); err != nil {
							t.Errorf("put %d: %v", i, err)
						}
					}
				})
			}
			writers.Wait()
			check(t, s)
			shut(t, s)
			s = open(t, c.Open, dir)
			check(t, s)
			if v, err := s.Get(t.Context(), contestant.NewKey("accounts/00", "none")); err == nil {
				t.Errorf("a key that is not there: got %q, want an error", v)
			}
			shut(t, s)
		})
	}
}

func open(t *testing.T, open contestant.Open, dir string) contestant.Store {
	t.Helper()
	s, err := open(dir)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

func shut(t *testing.T, s contestant.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func check(t *testing.T, s contestant.Store) {
	t.Helper()
	for i := range keys {
		want := value(i, 1)
		if i < keys/2 {
			want = value(i, 2)
		}
		if got, err := s.Get(t.Context(), key(i)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("key %d: got %q, %v, want %q", i, got, err, want)
		}
	}
}

// TestGetReturnsACopy: a contestant that handed out its own memory would read
// faster than one whose values can be kept.
func TestGetReturnsACopy(t *testing.T) {
	for _, c := range contestant.All {
		t.Run(c.Name, func(t *testing.T) {
			s := open(t, c.Open, t.TempDir())
			defer shut(t, s)
			if err := s.Put(t.Context(), key(1), value(1, 1)); err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(t.Context(), key(1))
			if err != nil {
				t.Fatal(err)
			}
			clear(got)
			if again, err := s.Get(t.Context(), key(1)); err != nil || !bytes.Equal(again, value(1, 1)) {
				t.Errorf("after a change of what it returned: got %q, %v, want %q", again, err, value(1, 1))
			}
		})
	}
}

func TestOursRefusesTheStaleToken(t *testing.T) {
	s := open(t, contestant.OpenOurs, t.TempDir())
	defer shut(t, s)
	ours := s.(*contestant.Ours)
	if err := ours.Load(t.Context(), []contestant.Pair{{Key: key(1), Value: value(1, 1)}}); err != nil {
		t.Fatal(err)
	}
	if err := ours.PutStale(t.Context(), key(1), value(1, 2)); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got %v, want %v", err, fence.ErrStale)
	}
}
