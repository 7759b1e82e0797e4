package fencedkv_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// openCommit opens a new store with a commit of the test's.
func openCommit(t *testing.T, commit func(*bbolt.Tx) error) *fencedkv.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := fencedkv.OpenCommit(path, nil, commit)
	must(t, err)
	t.Cleanup(func() {
		must(t, s.Close())
		checkFile(t, path)
	})
	return s
}

// noRoom is the commit of a disk that is full.
func noRoom(tx *bbolt.Tx) error {
	return errors.Join(tx.Rollback(), &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
}

// whileHeld runs fn while the function of an Update holds the committer: what is
// queued meanwhile is the next batch.
func whileHeld(t *testing.T, s *fencedkv.Store, fn func()) {
	t.Helper()
	must(t, s.Resource("held").Update(t.Context(), token(1, ""), func(context.Context, *fencedkv.Tx) error {
		fn()
		return nil
	}))
}

// pending is a call on a goroutine of its own.
type pending struct {
	done chan struct{}
	err  error
}

// queue starts a call and returns when it waits.
func queue(call func() error) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = call()
	}()
	synctest.Wait()
	return p
}

func (p *pending) wait() error {
	<-p.done
	return p.err
}

// over reports whether the call has returned, once everybody waits.
func (p *pending) over() bool {
	synctest.Wait()
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func TestBatchIsOneCommitAndEachRequestSeesThoseBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := 0
		s := openCommit(t, func(tx *bbolt.Tx) error { commits++; return tx.Commit() })
		r := s.Resource("r")
		put := func(n uint64, holder, key, value string) func() error {
			return func() error { return r.Put(t.Context(), token(n, holder), b(key), b(value)) }
		}
		var good, stale, collides, later, update *pending
		seen := ""
		whileHeld(t, s, func() {
			commits = 0
			good = queue(put(2, "b", "k", "v"))
			stale = queue(put(1, "a", "k", "stale"))
			collides = queue(put(2, "c", "k", "collides"))
			update = queue(func() error {
				return r.Update(t.Context(), token(2, "b"), func(_ context.Context, tx *fencedkv.Tx) error {
					v, err := tx.Get(b("k"))
					seen = string(v)
					return errors.Join(err, tx.Put(b("l"), v))
				})
			})
			later = queue(put(3, "d", "k", "w"))
		})
		must(t, good.wait())
		must(t, update.wait())
		must(t, later.wait())
		wantIs(t, stale.wait(), fence.ErrStale)
		wantIs(t, collides.wait(), fence.ErrCollision)
		wantValue(t, r, "k", "w")
		wantValue(t, r, "l", "v")
		wantMark(t, r, token(3, "d"))
		if seen != "v" {
			t.Errorf("the function of a batch read %q, want what the request before it put", seen)
		}
		if commits != 2 { // that of the function that held, and one
			t.Errorf("%d commits, want 2", commits)
		}
	})
}

func TestRefusalThatRestsOnABatchWaitsForItsCommit(t *testing.T) {
	own := errors.New("own")
	for name, tt := range map[string]struct {
		commit         func(tx *bbolt.Tx) error
		writer         error // what the writer is told
		refused, apart error // what the others are told
	}{
		"committed": {(*bbolt.Tx).Commit, nil, fence.ErrStale, own},
		"not applied": {func(tx *bbolt.Tx) error { return errors.Join(tx.Rollback(), syscall.EIO) },
			fencedkv.ErrFailed, fencedkv.ErrFailed, fencedkv.ErrFailed},
		"not known": {func(tx *bbolt.Tx) error { return errors.Join(tx.Commit(), syscall.EIO) },
			fencedkv.ErrUnknownOutcome, fencedkv.ErrFailed, fencedkv.ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gate chan struct{}
				s := openCommit(t, func(tx *bbolt.Tx) error {
					if tx.Bucket([]byte("marks")).Get([]byte("r")) == nil {
						return tx.Commit()
					}
					<-gate
					return tt.commit(tx)
				})
				r := s.Resource("r")
				var writer, refused, failed *pending
				gate = make(chan struct{})
				whileHeld(t, s, func() {
					writer = queue(func() error { return r.Put(t.Context(), token(2, ""), b("k"), b("v")) })
					refused = queue(func() error { return r.Raise(t.Context(), token(1, "")) })
					failed = queue(func() error {
						return r.Update(t.Context(), token(2, ""), func(context.Context, *fencedkv.Tx) error { return own })
					})
				})
				if writer.over() || refused.over() || failed.over() {
					t.Error("a result was delivered before the commit that it rests on")
				}
				close(gate)
				for what, c := range map[string]struct {
					got, want error
				}{"writer": {writer.wait(), tt.writer}, "refused": {refused.wait(), tt.refused}, "function": {failed.wait(), tt.apart}} {
					if !errors.Is(c.got, c.want) {
						t.Errorf("%s: got %v, want %v", what, c.got, c.want)
					}
					if tt.writer != nil && (errors.Is(c.got, fence.ErrStale) || errors.Is(c.got, own)) {
						t.Errorf("%s: got %v although its ground was lost", what, c.got)
					}
				}
			})
		})
	}
}

func TestFunctionInABatchUndoesOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil)
		r := s.Resource("r")
		own := errors.New("own")
		update := func(key string, end func() error) *pending {
			return queue(func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = p.(error)
					}
				}()
				return r.Update(t.Context(), token(9, ""), func(_ context.Context, tx *fencedkv.Tx) error {
					must(t, tx.Put(b(key), b("v")))
					return end()
				})
			})
		}
		var before, failed, panicked, exited, after *pending
		whileHeld(t, s, func() {
			before = queue(func() error { return r.Put(t.Context(), token(2, ""), b("before"), b("v")) })
			failed = update("failed", func() error { return own })
			panicked = update("panicked", func() error { panic(own) })
			exited = update("exited", func() error { runtime.Goexit(); return nil })
			after = queue(func() error { return r.Put(t.Context(), token(3, ""), b("after"), b("v")) })
		})
		must(t, before.wait())
		must(t, after.wait())
		wantIs(t, failed.wait(), own)
		wantIs(t, panicked.wait(), own)
		must(t, exited.wait())
		wantMark(t, r, token(3, ""))
		for _, key := range []string{"failed", "panicked", "exited"} {
			wantNone(t, r, key)
		}
		wantValue(t, r, "before", "v")
		wantValue(t, r, "after", "v")
	})
}

// TestContextThatEndsWhileAnotherFunctionRunsAppliesNothing: the request is in
// the batch already, and comes out at once.
func TestContextThatEndsWhileAnotherFunctionRunsAppliesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil)
		r, q := s.Resource("r"), s.Resource("q")
		ctx, cancel := context.WithCancel(t.Context())
		var put, update, other *pending
		runs := 0
		whileHeld(t, s, func() {
			other = queue(func() error { return q.Put(t.Context(), token(1, ""), b("k"), b("v")) })
			put = queue(func() error { return r.Put(ctx, token(5, ""), b("k"), b("v")) })
			update = queue(func() error {
				return r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
					runs++
					return tx.Put(b("l"), b("v"))
				})
			})
			// The function of the batch that ends the context of another request.
			queue(func() error {
				return s.Resource("x").Update(t.Context(), token(1, ""), func(context.Context, *fencedkv.Tx) error {
					cancel()
					<-put.done
					return nil
				})
			})
		})
		wantIs(t, put.wait(), context.Canceled)
		must(t, other.wait())
		// What it was refused for is gone: the function ran again, on the mark
		// that is there.
		must(t, update.wait())
		wantMark(t, r, token(1, ""))
		wantNone(t, r, "k")
		wantValue(t, r, "l", "v")
		wantValue(t, q, "k", "v")
		if runs != 1 {
			t.Errorf("the function ran %d times; it was refused the first time", runs)
		}
	})
}

func TestDamagedRecordInABatchCostsOnlyItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := damaged(t, func(tx *bbolt.Tx) error {
			data := tx.Bucket([]byte("data"))
			if err := data.Delete(rkey("r0100")); err != nil {
				return err
			}
			_, err := data.CreateBucket(rkey("r0100"))
			return err
		})
		var before, bad, after *pending
		whileHeld(t, s, func() {
			put := func(name string) *pending {
				return queue(func() error { return s.Resource(name).Put(t.Context(), token(5000, ""), b("key"), b("new")) })
			}
			before, bad, after = put("n1"), queue(func() error {
				return s.Resource("r0100").Put(t.Context(), token(5000, "h"), b("key"), b("new"))
			}), put("n2")
		})
		must(t, before.wait())
		must(t, after.wait())
		wantCorrupt(t, bad.wait(), "value", "r0100", "key")
		wantValue(t, s.Resource("n1"), "key", "new")
		wantValue(t, s.Resource("n2"), "key", "new")
		if m, err := s.Resource("r0100").Highest(t.Context()); err != nil || m.Seq == 5000 {
			t.Errorf("the mark of the request that was not applied: %v, %v", m, err)
		}
	})
}

func TestRequestWithoutRoomCostsOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := true
		s := openCommit(t, func(tx *bbolt.Tx) error {
			if full && tx.Bucket([]byte("marks")).Get([]byte("big")) != nil {
				return noRoom(tx)
			}
			return tx.Commit()
		})
		var before, big, after *pending
		put := func(name string) *pending {
			return queue(func() error { return s.Resource(name).Put(t.Context(), token(1, ""), b("k"), b("v")) })
		}
		whileHeld(t, s, func() { before, big, after = put("before"), put("big"), put("after") })
		must(t, before.wait())
		must(t, after.wait())
		wantIs(t, big.wait(), syscall.ENOSPC)
		wantMark(t, s.Resource("big"), fence.Token{})
		full = false
		must(t, put("big").wait())
	})
}

func TestCloseWaitsForWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "store.db")
		s, err := fencedkv.Open(path, nil)
		must(t, err)
		r := s.Resource("r")
		var accepted, closed *pending
		whileHeld(t, s, func() {
			accepted = queue(func() error { return r.Put(t.Context(), token(1, ""), b("k"), b("v")) })
			closed = &pending{done: make(chan struct{})}
			go func() { // it waits for a lock, which a bubble does not count as waiting
				defer close(closed.done)
				closed.err = s.Close()
			}()
			refused := make(chan struct{})
			go func() { // here it would be refused as nested
				defer close(refused)
				for !errors.Is(s.Check(t.Context()), fencedkv.ErrClosed) {
					runtime.Gosched()
				}
			}()
			<-refused
		})
		must(t, accepted.wait())
		must(t, closed.wait())
		wantValue(t, openAt(t, path, nil).Resource("r"), "k", "v")
	})
}
