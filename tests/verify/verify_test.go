package verify_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

func TestOnlyTheCurrentGrantOfRedisRaisesAMark(t *testing.T)   { onlyTheCurrentGrant(t, startRedis) }
func TestOnlyTheCurrentGrantOfRedlockRaisesAMark(t *testing.T) { onlyTheCurrentGrant(t, startRedlock) }
func TestOnlyTheCurrentGrantOfEtcdRaisesAMark(t *testing.T)    { onlyTheCurrentGrant(t, startEtcd) }
func TestOnlyTheCurrentGrantOfZooKeeperRaisesAMark(t *testing.T) {
	onlyTheCurrentGrant(t, startZooKeeper)
}
func TestOnlyTheCurrentGrantByZxidRaisesAMark(t *testing.T) { onlyTheCurrentGrant(t, startZxids) }

func onlyTheCurrentGrant(t *testing.T, start func(testing.TB) *service) {
	t.Parallel()
	s := start(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *service)
	}{
		{"Holder", theHolderIsAdmitted},
		{"Forged", aForgedTokenIsRefused},
		{"AnotherLock", aTokenOfAnotherLockIsRefused},
		{"LongName", aLineageThatIsCutIsRecognised},
		{"Waiter", aWaitersTokenIsRefused},
		{"Released", aReleasedTokenIsRefused},
		{"RolledBack", aMarkFromABackupLetsNobodyIn},
		{"Unreachable", aServiceThatDoesNotAnswerIsAReasonOfItsOwn},
		{"Forgotten", aGrantThatTheServiceHasLostIsRefused},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
}

// openAt opens a store that asks the service.
func openAt(t *testing.T, path string, verifiers ...fence.Verifier) *fencedkv.Store {
	t.Helper()
	store, err := fencedkv.Open(path, &fencedkv.Options{Verifiers: verifiers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// newResource is a resource, of a new store that asks the service.
func (s *service) newResource(t *testing.T, name string) *fencedkv.Resource {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "store.db"), s.verifier).Resource(name)
}

// refused offers a token, which must be refused for that reason.
func refused(t *testing.T, r *fencedkv.Resource, tok fence.Token, reason error, current fence.Token) *fence.UnverifiedError {
	t.Helper()
	err := r.Put(bounded.Context(t), tok, []byte("k"), []byte("by "+tok.String()))
	rejected, isRejected := errors.AsType[*fence.RejectedError](err)
	u, isUnverified := errors.AsType[*fence.UnverifiedError](err)
	if !isRejected || !isUnverified || rejected.Offered != tok || !errors.Is(err, fence.ErrUnverified) {
		t.Fatalf("%v: got error %v, want its refusal, because it is not verified", tok, err)
	}
	if !errors.Is(u.Reason, reason) || u.Current != current {
		t.Errorf("%v: got %v, want the reason %v and the current grant %v", tok, err, reason, current)
	}
	if m, err := r.Highest(t.Context()); err != nil || m.Token == tok {
		t.Errorf("%v: the mark is %v, %v, although the token was refused", tok, m, err)
	}
	return u
}

func admitted(t *testing.T, r *fencedkv.Resource, tok fence.Token) {
	t.Helper()
	if err := r.Put(bounded.Context(t), tok, []byte("k"), []byte("v")); err != nil {
		t.Fatalf("%v, the current grant: %v", tok, err)
	}
	if m, err := r.Highest(t.Context()); err != nil || m.Token != tok {
		t.Errorf("the mark is %v, %v, want %v", m, err, tok)
	}
}

func theHolderIsAdmitted(t *testing.T, s *service) {
	r := s.newResource(t, "held")
	var first fence.Token
	err := r.Exclusive(bounded.Context(t), s.holder, func(ctx context.Context, h *fencedkv.Held) error {
		first = h.Token()
		return h.Put(ctx, []byte("k"), []byte("v"))
	})
	if err != nil {
		t.Fatal(err)
	}
	lease := bounded.Acquire(t, s.other, "held")
	admitted(t, r, lease.Token())
	bounded.Release(t, lease)
	// A mark that was raised stays, and its holder may finish.
	admitted(t, r, lease.Token())
	if err := r.Raise(bounded.Context(t), first); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the first holder: got %v, want ErrStale", err)
	}
}

func aForgedTokenIsRefused(t *testing.T, s *service) {
	r := s.newResource(t, "forged")
	lease := bounded.Acquire(t, s.holder, "forged")
	good := lease.Token()
	for _, raised := range []bool{false, true} {
		if raised {
			admitted(t, r, good)
		}
		refused(t, r, fence.Token{Lineage: good.Lineage, Seq: good.Seq + 1, Holder: good.Holder}, fence.ErrNotGranted, good)
		refused(t, r, fence.Token{Lineage: good.Lineage, Seq: 1<<64 - 1, Holder: "somebody"}, fence.ErrNotGranted, good)
		if raised {
			continue // order comes first, and refuses what follows
		}
		refused(t, r, fence.Token{Lineage: good.Lineage, Seq: good.Seq}, fence.ErrNotGranted, good)
		refused(t, r, fence.Token{Lineage: good.Lineage, Seq: good.Seq, Holder: "somebody"}, fence.ErrNotGranted, good)
		refused(t, r, fence.Number(good.Seq), fence.ErrNoVerifier, fence.Token{})
		refused(t, r, fence.Token{Lineage: "elsewhere:forged", Seq: good.Seq, Holder: good.Holder}, fence.ErrNoVerifier, fence.Token{})
	}
	bounded.Release(t, lease)
}

func aTokenOfAnotherLockIsRefused(t *testing.T, s *service) {
	r := s.newResource(t, "mine")
	mine, theirs := bounded.Acquire(t, s.holder, "mine"), bounded.Acquire(t, s.other, "theirs")
	refused(t, r, theirs.Token(), fence.ErrNoVerifier, fence.Token{})
	renamed := theirs.Token()
	renamed.Lineage = mine.Token().Lineage
	refused(t, r, renamed, fence.ErrNotGranted, mine.Token())
	admitted(t, r, mine.Token())
	bounded.Release(t, mine)
	bounded.Release(t, theirs)
}

// A lineage has no room for a long name, and ends with a checksum then.
func aLineageThatIsCutIsRecognised(t *testing.T, s *service) {
	long := strings.Repeat("x", fencedkv.MaxResource-1)
	r := s.newResource(t, long+"1")
	one, two := bounded.Acquire(t, s.holder, long+"1"), bounded.Acquire(t, s.other, long+"2")
	if n := len(one.Token().Lineage); n != fence.MaxLineage {
		t.Fatalf("the lineage of a long name has %d bytes, want %d", n, fence.MaxLineage)
	}
	refused(t, r, two.Token(), fence.ErrNoVerifier, fence.Token{})
	admitted(t, r, one.Token())
	bounded.Release(t, one)
	bounded.Release(t, two)
}

func aWaitersTokenIsRefused(t *testing.T, s *service) {
	r := s.newResource(t, "queue")
	lease := bounded.Acquire(t, s.holder, "queue")
	good := lease.Token()
	var waiters []fence.Token
	granted := bounded.Queue(t, s.other, "queue", func() bool {
		waiters = s.waiting(t, "queue")
		return len(waiters) > 0
	})
	for _, w := range waiters {
		w.Lineage = good.Lineage
		if w.Seq != 0 {
			refused(t, r, w, fence.ErrNotGranted, good)
			continue
		}
		for _, guess := range []uint64{good.Seq, good.Seq + 1} {
			w.Seq = guess
			refused(t, r, w, fence.ErrNotGranted, good)
		}
	}
	bounded.Release(t, lease)
	next := bounded.Granted(t, "the waiter", granted)
	refused(t, r, good, fence.ErrNotGranted, next.Token())
	admitted(t, r, next.Token())
	bounded.Release(t, next)
}

func aReleasedTokenIsRefused(t *testing.T, s *service) {
	r := s.newResource(t, "released")
	lease := bounded.Acquire(t, s.holder, "released")
	bounded.Release(t, lease)
	refused(t, r, lease.Token(), fence.ErrNotGranted, fence.Token{})
	next := bounded.Acquire(t, s.other, "released")
	refused(t, r, lease.Token(), fence.ErrNotGranted, next.Token())
	admitted(t, r, next.Token())
	bounded.Release(t, next)
}

// The file is restored from a copy of the time before the second holder, so that
// order would let the first one in again.
func aMarkFromABackupLetsNobodyIn(t *testing.T, s *service) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	with := func(path string, verifiers []fence.Verifier, fn func(*fencedkv.Resource)) {
		t.Helper()
		store, err := fencedkv.Open(path, &fencedkv.Options{Verifiers: verifiers})
		if err != nil {
			t.Fatal(err)
		}
		fn(store.Resource("backup"))
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	backup := func(to string) {
		t.Helper()
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked := []fence.Verifier{s.verifier}
	first := bounded.Acquire(t, s.holder, "backup")
	with(path, asked, func(*fencedkv.Resource) {})
	backup("empty.db")
	with(path, asked, func(r *fencedkv.Resource) { admitted(t, r, first.Token()) })
	bounded.Release(t, first)
	second := bounded.Acquire(t, s.other, "backup")
	with(path, asked, func(r *fencedkv.Resource) { admitted(t, r, second.Token()) })
	bounded.Release(t, second)
	third := bounded.Acquire(t, s.holder, "backup")

	backup("later.db")
	if err := os.Rename(filepath.Join(dir, "empty.db"), path); err != nil {
		t.Fatal(err)
	}
	with(path, asked, func(r *fencedkv.Resource) {
		refused(t, r, first.Token(), fence.ErrNotGranted, third.Token())
		refused(t, r, second.Token(), fence.ErrNotGranted, third.Token())
		admitted(t, r, third.Token())
	})
	with(filepath.Join(dir, "later.db"), nil, func(r *fencedkv.Resource) { admitted(t, r, third.Token()) })
	bounded.Release(t, third)
}

func aServiceThatDoesNotAnswerIsAReasonOfItsOwn(t *testing.T, s *service) {
	r := s.newResource(t, "away")
	lease := bounded.Acquire(t, s.holder, "away")
	resume := s.pause(t)
	u := refused(t, r, lease.Token(), fence.ErrNoAnswer, fence.Token{})
	if !errors.Is(u, locks.ErrUnreachable) {
		t.Errorf("got %v, want an error over locks.ErrUnreachable", u)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience/8)
	defer cancel()
	err := r.Raise(ctx, lease.Token())
	if !errors.Is(err, fence.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call with a short deadline: got %v, want ErrNoAnswer and DeadlineExceeded", err)
	}
	// What is no question of the service's is decided without it.
	refused(t, r, fence.Number(1), fence.ErrNoVerifier, fence.Token{})
	resume()
	bounded.Eventually(t, "an answer after the service has come back", func() bool {
		err := r.Raise(bounded.Context(t), lease.Token())
		if err != nil && !errors.Is(err, fence.ErrNoAnswer) {
			t.Fatal(err)
		}
		return err == nil
	})
	// A write that raises nothing needs no service.
	resume = s.pause(t)
	admitted(t, r, lease.Token())
	resume()
	if err := lease.Release(t.Context()); err != nil && !errors.Is(err, locks.ErrUnreachable) {
		t.Error(err)
	}
}

func aGrantThatTheServiceHasLostIsRefused(t *testing.T, s *service) {
	r := s.newResource(t, "lost")
	lease := bounded.Acquire(t, s.holder, "lost")
	s.forget(t, "lost")
	tok := lease.Token()
	bounded.Eventually(t, "the refusal of a grant that the service has lost", func() bool {
		err := r.Raise(bounded.Context(t), tok)
		switch {
		case err == nil:
			t.Fatalf("%v was admitted, although the service has lost it", tok)
		case errors.Is(err, fence.ErrNoAnswer):
			return false // it starts
		}
		refused(t, r, tok, fence.ErrNotGranted, fence.Token{})
		return true
	})
}
