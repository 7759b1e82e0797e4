package fencedkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// longName makes trees with branches above branches of few resources.
func longName(i int) string { return fmt.Sprintf("%04d", i) + strings.Repeat(".", 300) }

const longNames = 1200

// long makes a store of resources with long names, of which every second has a
// key, and returns its file.
func long(t *testing.T) (path string, file []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s.db")
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	var claims []fencedkv.Claim
	for i := range longNames {
		claims = append(claims, fencedkv.Claim{Resource: longName(i), Token: token(uint64(i+1), "h")})
	}
	must(t, s.Update(t.Context(), claims, func(_ context.Context, mtx *fencedkv.MultiTx) error {
		for i := 0; i < longNames; i += 2 {
			tx, err := mtx.Resource(longName(i))
			must(t, err)
			must(t, tx.Put(b("key"), b("value")))
			must(t, tx.Put(b("key 2"), b("value")))
		}
		return nil
	}))
	must(t, s.Close())
	file, err = os.ReadFile(path)
	must(t, err)
	return path, file
}

// branch is a branch page of a file.
type branch struct {
	page     int
	elements []int // where they lie
}

// branches returns the branches of the tree of marks, or of values.
func branches(t *testing.T, file []byte, marks bool) (all []branch) {
	t.Helper()
	for _, at := range elements(file, branchFlag) {
		key := at[0] + int(native.Uint32(file[at[0]:]))
		// A key of the data bucket begins with the length of the name.
		if (file[key] != 1) == marks {
			all = append(all, branch{(at[0] - pageHead) / os.Getpagesize(), at})
		}
	}
	return all
}

func (br branch) child(file []byte, i int) int { return int(native.Uint64(file[br.elements[i]+8:])) }

// middle returns the branches from the root of a tree down to the leaves, at the
// middle of each.
func middle(t *testing.T, file []byte, marks bool) (path []branch) {
	t.Helper()
	all := branches(t, file, marks)
	isChild := map[int]bool{}
	for _, br := range all {
		for i := range br.elements {
			isChild[br.child(file, i)] = true
		}
	}
	find := func(fits func(page int) bool) bool {
		for _, br := range all {
			if fits(br.page) {
				path = append(path, br)
				return true
			}
		}
		return false
	}
	// Pages that a commit has freed are still in the file, but all is one commit.
	if !find(func(page int) bool { return !isChild[page] }) {
		t.Fatal("no root was found")
	}
	for {
		br := path[len(path)-1]
		next := br.child(file, len(br.elements)/2)
		if !find(func(page int) bool { return page == next }) {
			return path
		}
	}
}

func TestPagesThatLeadInACircleAreErrCorrupt(t *testing.T) {
	path, sound := long(t)
	for _, marks := range []bool{true, false} {
		way := middle(t, sound, marks)
		if len(way) < 3 {
			t.Fatalf("the tree has %d levels of branches, want 3 or more", len(way))
		}
		for from, br := range way {
			for to := range from + 1 {
				for _, at := range []int{0, len(br.elements) / 2, len(br.elements) - 1} {
					file := bytes.Clone(sound)
					native.PutUint64(file[br.elements[at]+8:], uint64(way[to].page))
					name := fmt.Sprintf("marks %v, element %d of level %d leads to level %d", marks, at, from, to)
					t.Run(name, func(t *testing.T) { useCircle(t, path, sound, file, marks) })
				}
			}
		}
	}
}

// useCircle uses a store whose pages lead in a circle since it was opened. Every
// call returns, what it says is right or ErrCorrupt, and something must be
// ErrCorrupt. If it was so before, Open finds it.
func useCircle(t *testing.T, path string, sound, file []byte, marks bool) {
	must(t, os.WriteFile(path, file, 0o600))
	_, err := fencedkv.Open(path, nil)
	wantIs(t, err, fencedkv.ErrCorrupt)
	must(t, os.WriteFile(path, sound, 0o600))
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	defer s.Close()
	overwrite(t, path, file)
	wantIs(t, s.Check(t.Context()), fencedkv.ErrCorrupt)
	corrupt := func(err error) bool {
		t.Helper()
		if err != nil {
			wantIs(t, err, fencedkv.ErrCorrupt)
		}
		return err != nil
	}
	var cut []int // the resources that the circle cuts off
	for i := 0; i < longNames; i += 2 {
		r := s.Resource(longName(i))
		_, err := r.Highest(t.Context())
		_, getErr := r.Get(t.Context(), b("key"))
		if corrupt(err) && marks || corrupt(getErr) && !marks {
			cut = append(cut, i)
		}
	}
	if len(cut) == 0 {
		t.Fatal("no read is ErrCorrupt")
	}
	scan := func(seq func(fencedkv.Range) iter.Seq2[fencedkv.KV, error], reverse bool) error {
		return scanError(seq(fencedkv.Range{Reverse: reverse}))
	}
	for _, i := range []int{cut[0], cut[len(cut)/2], cut[len(cut)-1]} {
		r, tok := s.Resource(longName(i)), token(uint64(i+2), "h")
		for call, fn := range map[string]func() error{
			"Raise":  func() error { return r.Raise(t.Context(), tok) },
			"Put":    func() error { return r.Put(t.Context(), tok, b("key"), b("v")) },
			"Delete": func() error { return r.Delete(t.Context(), tok, b("key")) },
			"Scan": func() error {
				return r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error { return scan(tx.Scan, false) })
			},
			"Scan in Update": func() error {
				return r.Update(t.Context(), tok, func(_ context.Context, tx *fencedkv.Tx) error { return scan(tx.Scan, false) })
			},
			"reverse Scan in Update": func() error {
				return r.Update(t.Context(), tok, func(_ context.Context, tx *fencedkv.Tx) error { return scan(tx.Scan, true) })
			},
		} {
			if err := fn(); !corrupt(err) && (marks || call != "Raise") && (!marks || call != "Scan") {
				t.Errorf("%s of resource %d: no error", call, i)
			}
		}
	}
	// Beside those that are cut off: where there is no key, and where deletions
	// empty the leaves next to the circle.
	for _, i := range []int{cut[0] - 2, cut[len(cut)-1] + 2} {
		if i < 0 || i >= longNames {
			continue
		}
		r, tok := s.Resource(longName(i)), token(uint64(i+2), "h")
		corrupt(r.Delete(t.Context(), tok, b("key")))
		corrupt(r.Delete(t.Context(), tok, b("key 2")))
		corrupt(r.Update(t.Context(), tok, func(_ context.Context, tx *fencedkv.Tx) error { return scan(tx.Scan, i%4 == 0) }))
		_, err := r.Get(t.Context(), b("key 3"))
		if !errors.Is(err, fencedkv.ErrNotFound) {
			corrupt(err)
		}
		corrupt(s.Resource(longName(i)+"new").Raise(t.Context(), tok))
	}
}
