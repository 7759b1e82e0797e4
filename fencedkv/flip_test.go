package fencedkv_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
)

var flips = flag.Int("flips", 200, "bits that TestFlippedBitsAreErrors flips")

// TestFlippedBitsAreErrors flips one bit of a store's file at a time and reads
// everything. The properties:
//
//   - Open is ErrCorrupt or ErrFormat, or every mark and value that is read is
//     right or ErrCorrupt;
//   - in a store of more records than Open compares, one may also be missing, but
//     then Check finds it.
func TestFlippedBitsAreErrors(t *testing.T) {
	rnd := newRand(t)
	sizes := []int{3, 300, 2200}
	path := filepath.Join(t.TempDir(), "flipped.db")
	missing := 0
	for _, resources := range sizes {
		sound, err := os.ReadFile(filled(t, resources))
		must(t, err)
		for range *flips / len(sizes) {
			bit := rnd.IntN(len(sound) * 8)
			file := bytes.Clone(sound)
			file[bit/8] ^= 1 << (bit % 8)
			must(t, os.WriteFile(path, file, 0o600))
			missing += readFlipped(t, path, resources, bit)
		}
	}
	t.Logf("after %d of %d flips something was missing, and Check found it", missing, *flips)
}

func readFlipped(t *testing.T, path string, resources, bit int) (missing int) {
	t.Helper()
	s, err := fencedkv.Open(path, nil)
	if err != nil {
		if !errors.Is(err, fencedkv.ErrCorrupt) && !errors.Is(err, fencedkv.ErrFormat) {
			t.Errorf("%d resources, bit %d: Open: %v, want ErrCorrupt or ErrFormat", resources, bit, err)
		}
		return 0
	}
	lost := ""
	for i := range resources {
		r := s.Resource(rname(i))
		m, err := r.Highest(t.Context())
		switch {
		case errors.Is(err, fencedkv.ErrCorrupt), err == nil && m.Token == token(uint64(i+1), "h"):
		case err == nil && m.IsZero():
			lost = "mark of " + r.Name()
		default:
			t.Errorf("%d resources, bit %d: Highest(%s) = %v, %v", resources, bit, r.Name(), m, err)
		}
		v, err := r.Get(t.Context(), b("key"))
		switch {
		case errors.Is(err, fencedkv.ErrCorrupt):
		case errors.Is(err, fencedkv.ErrNotFound):
			if i%2 == 0 {
				lost = "value of " + r.Name()
			}
		case err != nil || string(v) != "value of "+r.Name() || i%2 == 1:
			t.Errorf("%d resources, bit %d: Get(%s) = %q, %v", resources, bit, r.Name(), v, err)
		}
	}
	if lost != "" {
		missing++
		if err := s.Check(t.Context()); !errors.Is(err, fencedkv.ErrCorrupt) || resources < 1024 {
			t.Errorf("%d resources, bit %d: the %s is missing, and Check says %v", resources, bit, lost, err)
		}
	}
	if err := s.Close(); err != nil && !errors.Is(err, fencedkv.ErrCorrupt) {
		t.Errorf("%d resources, bit %d: Close: %v", resources, bit, err)
	}
	return missing
}
