package fencedkv_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func TestFailedCommitFailsTheStore(t *testing.T) {
	for name, tt := range map[string]struct {
		commit func(tx *bbolt.Tx) error
		want   error
		there  bool // after a fresh Open
	}{
		"before the meta page": {func(tx *bbolt.Tx) error { return errors.Join(tx.Rollback(), syscall.EIO) }, fencedkv.ErrFailed, false},
		"a sync without room":  {func(tx *bbolt.Tx) error { return errors.Join(tx.Rollback(), syscall.ENOSPC) }, fencedkv.ErrFailed, false},
		"at the meta page":     {func(tx *bbolt.Tx) error { return errors.Join(tx.Commit(), syscall.EIO) }, fencedkv.ErrUnknownOutcome, true},
		"in a panic":           {func(*bbolt.Tx) error { panic("page 7") }, fencedkv.ErrUnknownOutcome, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			var log bytes.Buffer
			fail := false
			s, err := fencedkv.OpenCommit(path, &fencedkv.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})},
				func(tx *bbolt.Tx) error {
					if fail {
						return tt.commit(tx)
					}
					return tx.Commit()
				})
			must(t, err)
			r := s.Resource("r")
			must(t, r.Put(t.Context(), token(1, "a"), b("k"), b("v")))
			fail = true
			err = r.Put(t.Context(), token(2, "b"), b("k"), b("w"))
			wantIs(t, err, tt.want)
			if errors.Is(err, fencedkv.ErrFailed) && errors.Is(err, fencedkv.ErrUnknownOutcome) {
				t.Errorf("got %v, want one of ErrFailed and ErrUnknownOutcome", err)
			}
			if !strings.Contains(log.String(), path) || !strings.Contains(log.String(), "[ERROR]") {
				t.Errorf("the log says %q, want an error that names the file", log.String())
			}
			fail = false
			for name, call := range everyCall(s) {
				if err := call(t.Context()); !errors.Is(err, fencedkv.ErrFailed) && name != "Exclusive" {
					t.Errorf("%s after a failed commit: got %v, want ErrFailed", name, err)
				}
			}
			// A decision of the fence rests on the file too.
			wantIs(t, r.Raise(t.Context(), token(1, "stale")), fencedkv.ErrFailed)
			must(t, s.Close())

			r = openAt(t, path, nil).Resource("r")
			if tt.there {
				wantValue(t, r, "k", "w")
				wantMark(t, r, token(2, "b"))
			} else {
				wantValue(t, r, "k", "v")
				wantMark(t, r, token(1, "a"))
			}
		})
	}
}

// TestReadsAndRefusalsRestOnWhatIsDurable: bbolt shows a transaction before the
// second sync of its commit has ended.
func TestReadsAndRefusalsRestOnWhatIsDurable(t *testing.T) {
	for name, fails := range map[string]error{"the sync works": nil, "the sync fails": syscall.EIO} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var before, after chan struct{} // closed when the commit may go on
				s := openCommit(t, func(tx *bbolt.Tx) error {
					if before == nil {
						return tx.Commit()
					}
					<-before
					err := tx.Commit()
					<-after
					return errors.Join(err, fails)
				})
				r := s.Resource("r")
				must(t, r.Put(t.Context(), token(1, "a"), b("k"), b("old")))
				before, after = make(chan struct{}), make(chan struct{})
				writer := queue(func() error { return r.Put(t.Context(), token(2, "b"), b("k"), b("new")) })
				wantValue(t, r, "k", "old") // does not wait: nothing else can be seen

				close(before)
				synctest.Wait()
				var value []byte
				var mark fence.Mark
				viewed := ""
				readers := map[string]*pending{
					"Get":     queue(func() (err error) { value, err = r.Get(t.Context(), b("k")); return err }),
					"Highest": queue(func() (err error) { mark, err = r.Highest(t.Context()); return err }),
					"View": queue(func() error {
						return r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
							v, err := tx.Get(b("k"))
							viewed = string(v)
							return err
						})
					}),
				}
				refused := queue(func() error { return r.Put(t.Context(), token(1, "a"), b("k"), b("stale")) })
				for name, p := range readers {
					if p.over() {
						t.Errorf("%s returned before the commit was durable: %v", name, p.err)
					}
				}
				if refused.over() || writer.over() {
					t.Error("a write had a result before the commit was durable")
				}
				close(after)
				for name, p := range readers {
					switch err := p.wait(); {
					case fails == nil && err != nil, fails != nil && !errors.Is(err, fencedkv.ErrFailed):
						t.Errorf("%s: got %v", name, err)
					}
				}
				if fails != nil {
					wantIs(t, writer.wait(), fencedkv.ErrUnknownOutcome)
					wantIs(t, refused.wait(), fencedkv.ErrFailed)
					return
				}
				must(t, writer.wait())
				wantIs(t, refused.wait(), fence.ErrStale)
				if string(value) != "new" || viewed != "new" || mark.Token != token(2, "b") {
					t.Errorf("read %q, %q and %v, want the state that they waited for", value, viewed, mark)
				}
			})
		})
	}
}
