package fencedkv_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// TestLeafThatSaysItIsEmptyHidesNothing flips the one bit of the count of a leaf's
// records: all of them are gone, and those around them are sound and in order.
func TestLeafThatSaysItIsEmptyHidesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	var claims []fencedkv.Claim
	for i := range 3000 { // too many to be compared at Open
		claims = append(claims, fencedkv.Claim{Resource: fmt.Sprintf("lock/long-name/%06d", i), Token: token(34, "")})
	}
	must(t, s.Update(t.Context(), claims, func(context.Context, *fencedkv.MultiTx) error { return nil }))
	must(t, s.Close())

	const head, count, leaf = 16, 10, 2
	content, err := os.ReadFile(path)
	must(t, err)
	size, hidden := os.Getpagesize(), ""
	for at := 2 * size; at < len(content) && hidden == ""; at += size {
		page := content[at:]
		if binary.NativeEndian.Uint16(page[8:]) != leaf || bits.OnesCount16(binary.NativeEndian.Uint16(page[count:])) != 1 {
			continue
		}
		first := head + int(binary.NativeEndian.Uint32(page[head+4:]))
		if name := string(page[first : first+int(binary.NativeEndian.Uint32(page[head+8:]))]); strings.HasPrefix(name, "lock/") && !strings.HasSuffix(name, "000000") {
			hidden = name
			binary.NativeEndian.PutUint16(page[count:], 0)
		}
	}
	if hidden == "" {
		t.Fatal("no leaf has a number of marks that is a power of two")
	}
	must(t, os.WriteFile(path, content, 0o600))

	s, err = fencedkv.Open(path, nil)
	if err == nil {
		defer s.Close()
		err = s.Resource(hidden).Put(t.Context(), token(33, ""), b("k"), b("stale"))
	}
	wantIs(t, err, fencedkv.ErrCorrupt)
}

// TestListGoesOnFromTheMarkItEndedWith flips one bit of a name, which makes it the
// one that a page of the list ended with: what lies between them must not be left out.
func TestListGoesOnFromTheMarkItEndedWith(t *testing.T) {
	const last, other = "r0255", "r0257" // the end of the first page; one bit apart
	for long := range 30 {               // moves them within their leaf, and that is where it is searched for
		tail := strings.Repeat("x", long)
		path := filepath.Join(t.TempDir(), "store.db")
		s, err := fencedkv.Open(path, nil)
		must(t, err)
		var claims []fencedkv.Claim
		for i := range 1100 { // too many to be compared at Open
			claims = append(claims, fencedkv.Claim{Resource: fmt.Sprintf("r%04d%s", i, tail), Token: token(34, "")})
		}
		must(t, s.Update(t.Context(), claims, func(context.Context, *fencedkv.MultiTx) error { return nil }))
		must(t, s.Close())

		content, err := os.ReadFile(path)
		must(t, err)
		if n := bytes.Count(content, b(other+tail)); n != 1 {
			t.Fatalf("%s is there %d times, want once", other+tail, n)
		}
		must(t, os.WriteFile(path, bytes.Replace(content, b(other+tail), b(last+tail), 1), 0o600))
		s, err = fencedkv.Open(path, nil)
		must(t, err)
		n := 0
		for _, err = range s.Resources(t.Context()) {
			n++
		}
		if !errors.Is(err, fencedkv.ErrCorrupt) {
			t.Errorf("names of %d bytes: %d resources of %d, then %v, want ErrCorrupt", len(last+tail), n, len(claims), err)
		}
		must(t, s.Close())
	}
}
