package fencedkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
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
				// read looks at what a reader sees: whether the writer's state, and if
				// not, that it is the one before.
				type read struct {
					isNew bool
					err   error
				}
				state := func(value string, old, isNew string, err error) read {
					if err == nil && value != old && value != isNew {
						err = fmt.Errorf("read %q, want %q or %q", value, old, isNew)
					}
					return read{value == isNew, err}
				}
				var got [3]read
				readers := []*pending{
					queue(func() error {
						v, err := r.Get(t.Context(), b("k"))
						got[0] = state(string(v), "old", "new", err)
						return got[0].err
					}),
					queue(func() error {
						m, err := r.Highest(t.Context())
						got[1] = state(m.Token.String(), token(1, "a").String(), token(2, "b").String(), err)
						return got[1].err
					}),
					queue(func() error {
						return r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
							v, err := tx.Get(b("k"))
							got[2] = state(string(v), "old", "new", err)
							return got[2].err
						})
					}),
				}
				refused := queue(func() error { return r.Put(t.Context(), token(1, "a"), b("k"), b("stale")) })
				for i, p := range readers {
					// A state is shared only where address space can be reserved.
					if shared := runtime.GOOS != "windows" && strconv.IntSize == 64; p.over() != shared {
						t.Errorf("reader %d returned before the commit had ended: %v, want %v", i, p.over(), shared)
					}
					if p.over() && (p.err != nil || got[i].isNew) {
						t.Errorf("reader %d: %v, new %v; want the last durable state", i, p.err, got[i].isNew)
					}
				}
				if refused.over() || writer.over() {
					t.Error("a write had a result before the commit was durable")
				}
				var early [3]bool
				for i, p := range readers {
					early[i] = p.over()
				}
				close(after)
				for i, p := range readers {
					switch err := p.wait(); {
					case early[i]:
					case fails == nil && (err != nil || !got[i].isNew), fails != nil && !errors.Is(err, fencedkv.ErrFailed):
						t.Errorf("reader %d: %v, new %v", i, err, got[i].isNew)
					}
				}
				if fails != nil {
					wantIs(t, writer.wait(), fencedkv.ErrUnknownOutcome)
					wantIs(t, refused.wait(), fencedkv.ErrFailed)
					_, err := r.Get(t.Context(), b("k"))
					wantIs(t, err, fencedkv.ErrFailed)
					return
				}
				must(t, writer.wait())
				wantIs(t, refused.wait(), fence.ErrStale)
				wantValue(t, r, "k", "new")
				wantMark(t, r, token(2, "b"))
			})
		})
	}
}
