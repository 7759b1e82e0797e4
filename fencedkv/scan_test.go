package fencedkv_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// keysOf returns "key=value" of a sequence.
func keysOf(t testing.TB, seq iter.Seq2[fencedkv.KV, error]) []string {
	t.Helper()
	var got []string
	for kv, err := range seq {
		must(t, err)
		got = append(got, string(kv.Key)+"="+string(kv.Value))
	}
	return got
}

func wantKeys(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// neighbours puts keys into resources whose names lie around that of r.
func neighbours(t *testing.T, s *fencedkv.Store) {
	for _, name := range []string{"q", "r\x00", "ra", "s", "\x00", "\xff", "rr"} {
		for _, key := range []string{"\x00", "a", "\xff\xff"} {
			must(t, s.Resource(name).Put(t.Context(), token(1, ""), b(key), b("of another resource")))
		}
	}
}

func TestScanFindsExactlyTheRange(t *testing.T) {
	s := open(t, nil)
	neighbours(t, s)
	r := s.Resource("r")
	all := []string{"\x00", "a", "a\x00", "ab", "a\xff", "b", "b\xff\xff", "\xff", "\xff\xff"}
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		for _, k := range all {
			must(t, tx.Put(b(k), nil))
		}
		return nil
	}))
	bounds := []string{"", "\x00", "\x00\x00", "a", "a\x00", "aa", "ab", "b", "b\xff", "c", "\xff", "\xff\xff", "\xff\xff\xff"}

	check := func(scan func(fencedkv.Range) iter.Seq2[fencedkv.KV, error]) {
		for _, prefix := range bounds {
			for _, start := range bounds {
				for _, end := range bounds {
					var want []string
					for _, k := range all {
						if strings.HasPrefix(k, prefix) && k >= start && (end == "" || k < end) {
							want = append(want, k+"=")
						}
					}
					r := fencedkv.Range{Prefix: b(prefix), Start: b(start), End: b(end)}
					if got := keysOf(t, scan(r)); !slices.Equal(got, want) {
						t.Fatalf("prefix %q, [%q, %q): got %q, want %q", prefix, start, end, got, want)
					}
					slices.Reverse(want)
					r.Reverse = true
					if got := keysOf(t, scan(r)); !slices.Equal(got, want) {
						t.Fatalf("reverse, prefix %q, [%q, %q): got %q, want %q", prefix, start, end, got, want)
					}
				}
			}
		}
	}
	must(t, r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error { check(tx.Scan); return nil }))

	// The same with every second key only pending, and others deleted.
	r = s.Resource("ra2")
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		for i, k := range all {
			if i%2 == 0 {
				must(t, tx.Put(b(k), b("to be replaced")))
			}
			must(t, tx.Put(b(k+"\x01"), nil))
		}
		return nil
	}))
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		for _, k := range all {
			must(t, tx.Delete(b(k+"\x01")))
			must(t, tx.Put(b(k), nil))
		}
		check(tx.Scan)
		return nil
	}))
}

func TestScanOfAnEmptyResource(t *testing.T) {
	s := open(t, nil)
	view := func(name string) []string {
		var got []string
		must(t, s.Resource(name).View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
			got = append(keysOf(t, tx.Scan(fencedkv.Range{})), keysOf(t, tx.Scan(fencedkv.Range{Reverse: true}))...)
			return nil
		}))
		return got
	}
	wantKeys(t, "in an empty store", view("r"))
	neighbours(t, s)
	wantKeys(t, "between others", view("r"))
	wantKeys(t, "before others", view("\x00\x00"))
	wantKeys(t, "behind others", view(strings.Repeat("z", 100)))
}

func TestScanStopsAtItsLimit(t *testing.T) {
	r := open(t, nil).Resource("r")
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		for _, k := range []string{"a", "b", "c"} {
			must(t, tx.Put(b(k), b("1")))
		}
		wantKeys(t, "limit 2", keysOf(t, tx.Scan(fencedkv.Range{Limit: 2})), "a=1", "b=1")
		wantKeys(t, "limit 2, reverse", keysOf(t, tx.Scan(fencedkv.Range{Limit: 2, Reverse: true})), "c=1", "b=1")
		wantKeys(t, "limit 9", keysOf(t, tx.Scan(fencedkv.Range{Limit: 9})), "a=1", "b=1", "c=1")
		wantIs(t, scanError(tx.Scan(fencedkv.Range{Limit: -1})), fencedkv.ErrArgument)
		return nil
	}))
}

func TestScanCanBeUsedTwice(t *testing.T) {
	r := open(t, nil).Resource("r")
	must(t, r.Put(t.Context(), token(1, ""), b("a"), b("1")))
	must(t, r.Put(t.Context(), token(1, ""), b("b"), b("1")))
	must(t, r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
		seq := tx.Scan(fencedkv.Range{Limit: 2})
		for range 2 {
			wantKeys(t, "each use", keysOf(t, seq), "a=1", "b=1")
		}
		for range seq {
			break
		}
		wantKeys(t, "after a break", keysOf(t, seq), "a=1", "b=1")
		return nil
	}))
}

func TestScanSeesWhatItsLoopWritesAhead(t *testing.T) {
	r := open(t, nil).Resource("r")
	for _, k := range []string{"b", "d", "f"} {
		must(t, r.Put(t.Context(), token(1, ""), b(k), b("old")))
	}
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		var got []string
		for kv, err := range tx.Scan(fencedkv.Range{}) {
			must(t, err)
			got = append(got, string(kv.Key)+"="+string(kv.Value))
			if string(kv.Key) == "b" {
				must(t, tx.Put(b("a"), b("behind")))
				must(t, tx.Put(b("b"), b("here")))
				must(t, tx.Put(b("c"), b("ahead")))
				must(t, tx.Delete(b("d")))
				must(t, tx.Put(b("f"), b("replaced")))
			}
		}
		wantKeys(t, "forward", got, "b=old", "c=ahead", "f=replaced")

		got = nil
		for kv, err := range tx.Scan(fencedkv.Range{Reverse: true}) {
			must(t, err)
			got = append(got, string(kv.Key)+"="+string(kv.Value))
			if string(kv.Key) == "c" {
				must(t, tx.Put(b("e"), b("behind")))
				must(t, tx.Delete(b("b")))
				must(t, tx.Put(b("a\x00"), b("ahead")))
			}
		}
		wantKeys(t, "reverse", got, "f=replaced", "c=ahead", "a\x00=ahead", "a=behind")
		return nil
	}))
	must(t, r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
		wantKeys(t, "afterwards", keysOf(t, tx.Scan(fencedkv.Range{})),
			"a=behind", "a\x00=ahead", "c=ahead", "e=behind", "f=replaced")
		return nil
	}))
}

func TestScanDeletesWhatItPasses(t *testing.T) {
	r := open(t, nil).Resource("r")
	const n = 2000 // several pages
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		for i := range n {
			must(t, tx.Put(b(nameOf(i)), make([]byte, 20)))
		}
		return nil
	}))
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		passed := 0
		for kv, err := range tx.Scan(fencedkv.Range{}) {
			must(t, err)
			must(t, tx.Delete(kv.Key))
			passed++
		}
		if passed != n {
			t.Errorf("the loop passed %d keys, want %d", passed, n)
		}
		wantKeys(t, "in the function", keysOf(t, tx.Scan(fencedkv.Range{})))
		return nil
	}))
	must(t, r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
		wantKeys(t, "afterwards", keysOf(t, tx.Scan(fencedkv.Range{Reverse: true})))
		return nil
	}))
}
