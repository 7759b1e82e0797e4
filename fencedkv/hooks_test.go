package fencedkv_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func TestHooksHearOfCommitsRaisesAndRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *fencedkv.Store
		var commits []fencedkv.CommitInfo
		var raises []fencedkv.RaiseInfo
		var refusals []fencedkv.RefusalInfo
		nested := func() { // the hook of a call must not write or close
			if err := s.Resource("n").Raise(t.Context(), token(1, "")); !errors.Is(err, fencedkv.ErrNested) {
				t.Errorf("a write in a hook: got %v, want ErrNested", err)
			}
			if _, err := s.Resource("n").Highest(t.Context()); err != nil {
				t.Errorf("a read in a hook: %v", err)
			}
			if err := s.Close(); !errors.Is(err, fencedkv.ErrNested) {
				t.Errorf("Close in a hook: got %v, want ErrNested", err)
			}
		}
		s = openAt(t, filepath.Join(t.TempDir(), "s.db"), &fencedkv.Options{Hooks: fencedkv.Hooks{
			Commit:  func(i fencedkv.CommitInfo) { commits = append(commits, i); nested() },
			Raise:   func(i fencedkv.RaiseInfo) { raises = append(raises, i); nested() },
			Refusal: func(i fencedkv.RefusalInfo) { refusals = append(refusals, i); nested() },
		}})
		r := s.Resource("r")
		must(t, r.Put(t.Context(), token(2, "b"), b("k"), b("v")))
		wantIs(t, r.Put(t.Context(), token(1, "a"), b("k"), b("v")), fence.ErrStale)
		must(t, r.Delete(t.Context(), token(2, "b"), b("absent"))) // commits nothing
		m, err := r.Highest(t.Context())
		must(t, err)
		if len(commits) != 1 || commits[0].Requests != 1 || commits[0].Bytes == 0 {
			t.Errorf("commits %v, want one of one request", commits)
		}
		if len(raises) != 1 || raises[0] != (fencedkv.RaiseInfo{Resource: "r", Mark: m}) {
			t.Errorf("raises %v, want one of r to %v", raises, m)
		}
		if len(refusals) != 1 || refusals[0].Err.Offered != token(1, "a") {
			t.Fatalf("refusals %v, want one of token 1", refusals)
		}
		for _, text := range []string{commits[0].String(), raises[0].String(), refusals[0].String()} {
			if !strings.Contains(text, "1 requests") && !strings.Contains(text, `"r"`) {
				t.Errorf("an info prints as %q", text)
			}
		}
	})
}
