package device_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// TestHeldSyncShowsNobodyWhatIsNotDurable holds a sync of a commit back. Readers
// beside it get the old state or wait, writers queue, and a context that ends
// takes its request out. Then the sync works, or fails.
func TestHeldSyncShowsNobodyWhatIsNotDurable(t *testing.T) {
	for name, tt := range map[string]struct {
		sync int // of the data, then of the meta page
		fail syscall.Errno
		want string // what the writer is told
	}{
		"data, works":      {1, 0, applied},
		"data, fails":      {1, syscall.EIO, lost},
		"meta page, works": {2, 0, applied},
		"meta page, fails": {2, syscall.EIO, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDevice(t)
			store, err := fencedkv.Open(d.path(), nil)
			must(t, err)
			s := ours{store}
			defer s.close()
			must(t, s.do(putOf("a", 1, "k", "old")))
			must(t, d.call("Hold", Fault{Op: opFdatasync, N: tt.sync}, nil))

			writer := doing(s, putOf("a", 2, "k", "new"))
			must(t, d.call("Held", struct{}{}, nil))
			readers := startReaders(s, 4)
			queued := doing(s, putOf("b", 1, "k", "queued"))
			ctx, cancel := context.WithCancel(t.Context())
			withdrawn := make(chan error, 1)
			go func() {
				withdrawn <- store.Resource("b").Put(ctx, claim{"b", 1, ""}.token(), []byte("l"), []byte("withdrawn"))
			}()
			readers.haveTried(t, tt.sync == 1)
			cancel()
			if err := receive(t, "the withdrawn write", withdrawn); !errors.Is(err, context.Canceled) || told(err) == lost || told(err) == unknown {
				t.Errorf("a write whose context ended in the queue: told %v, want context.Canceled and nothing else", err)
			}
			for _, p := range []chan error{writer, queued} {
				select {
				case err := <-p:
					t.Errorf("a write was told %v while a sync was held", err)
				default:
				}
			}
			readers.released.Store(true)
			must(t, d.call("Release", tt.fail, nil))
			if got := told(receive(t, "the writer", writer)); got != tt.want {
				t.Errorf("the writer was told %s, want %s", got, tt.want)
			}
			next := lost
			if tt.want == applied {
				next = applied
			}
			if got := told(receive(t, "the queued writer", queued)); got != next {
				t.Errorf("the queued writer was told %s, want %s", got, next)
			}
			for _, seen := range readers.stop(t) {
				if seen.err != nil && (tt.want == applied || told(seen.err) != lost) {
					t.Errorf("a reader was told %v", seen.err)
				}
				if slices.Contains(seen.held, "new") || tt.want != applied && slices.Contains(seen.all, "new") {
					t.Errorf("a reader saw %q while the sync was held, and in all %q", seen.held, seen.all)
				}
			}
			must(t, s.close())

			again, err := openOurs(d.path())
			must(t, err)
			defer again.close()
			got, err := readWorld(again)
			must(t, err)
			value, other := got["a"].values["k"], got["b"].values
			if tt.want == applied && value != "new" || tt.want == lost && value != "old" || value != "new" && value != "old" {
				t.Errorf("a fresh Open has %q", value)
			}
			if there := other["k"] != ""; there != (next == applied) || other["l"] != "" {
				t.Errorf("a fresh Open has %q of the queued writes", other)
			}
		})
	}
}

// TestSnapshotThatIsOpenIsReadAfterTheStoreHasFailed: what it shows is durable,
// and nobody takes its pages.
func TestSnapshotThatIsOpenIsReadAfterTheStoreHasFailed(t *testing.T) {
	for n, want := range []string{1: lost, 2: unknown} {
		if n == 0 {
			continue
		}
		t.Run(want, func(t *testing.T) {
			d := newDevice(t)
			store, err := fencedkv.Open(d.path(), nil)
			must(t, err)
			s := ours{store}
			defer s.close()
			must(t, s.do(putOf("a", 1, "k", "old")))
			must(t, d.call("Hold", Fault{Op: opFdatasync, N: n}, nil))
			failed, reading, read := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			var value string
			go func() {
				read <- store.Resource("a").View(context.Background(), func(_ context.Context, tx *fencedkv.ReadTx) error {
					close(reading)
					<-failed
					v, err := tx.Get([]byte("k"))
					value = string(v)
					return err
				})
			}()
			receive(t, "the snapshot", reading)
			writer := doing(s, putOf("a", 2, "k", "new"))
			must(t, d.call("Held", struct{}{}, nil))
			must(t, d.call("Release", syscall.EIO, nil))
			if got := told(receive(t, "the writer", writer)); got != want {
				t.Errorf("the writer was told %s, want %s", got, want)
			}
			close(failed)
			if err := receive(t, "the reader", read); err != nil || value != "old" {
				t.Errorf("the snapshot has %q, %v; want what was there when it began", value, err)
			}
		})
	}
}

// putOf is a small write.
func putOf(resource string, seq uint64, key, value string) step {
	return step{put, []claim{{resource, seq, ""}}, []write{{resource: resource, key: key, value: value}}, applied}
}

// doing takes a step beside the test.
func doing(s subject, st step) chan error {
	done := make(chan error, 1)
	go func() { done <- s.do(st) }()
	return done
}

func receive[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("%s: nothing within %v", what, patience)
	}
	return v
}

// readers read one key until they are told to end, or an error ends them.
type readers struct {
	end      chan struct{}
	tried    chan struct{}
	ended    chan sight
	n        int
	released atomic.Bool // the sync is about to go on
}

// sight is what one reader saw.
type sight struct {
	held []string // while the sync was held
	all  []string
	err  error
}

func startReaders(s ours, n int) *readers {
	r := &readers{end: make(chan struct{}), tried: make(chan struct{}, n), ended: make(chan sight, n), n: n}
	for i := range n {
		go func() { r.ended <- r.read(s, i) }()
	}
	return r
}

// read uses one of the ways to read.
func (r *readers) read(s ours, way int) (seen sight) {
	a := s.Resource("a")
	one := func(ctx context.Context) (string, error) {
		switch way % 4 {
		case 0:
			v, err := a.Get(ctx, []byte("k"))
			return string(v), err
		case 1:
			m, err := a.Highest(ctx)
			return map[uint64]string{1: "old", 2: "new"}[m.Seq], err
		case 2:
			var v []byte
			err := a.View(ctx, func(_ context.Context, tx *fencedkv.ReadTx) (err error) {
				v, err = tx.Get([]byte("k"))
				return err
			})
			return string(v), err
		}
		// What a refusal says is a read too.
		err := a.Raise(ctx, claim{"a", 1, "somebody else"}.token())
		switch told(err) {
		case refused:
			if refusedBy(err) == 2 {
				return "new", nil
			}
			return "old", nil
		}
		return "", err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		if n == 1 {
			r.tried <- struct{}{}
		}
		select {
		case <-r.end:
			return seen
		case <-tick.C:
		}
		v, err := one(context.Background())
		if err != nil {
			seen.err = err
			return seen
		}
		seen.all = append(seen.all, v)
		if !r.released.Load() {
			seen.held = append(seen.held, v)
		}
	}
}

// haveTried waits until every reader has read something. Unless they must, it is
// enough that they could have: they may wait for the sync.
func (r *readers) haveTried(t *testing.T, must bool) {
	t.Helper()
	long := 100 * time.Millisecond
	if must {
		long = patience
	}
	end := time.After(long)
	for range r.n {
		select {
		case <-r.tried:
		case <-end:
			if must {
				t.Errorf("a reader waits although there is nothing new to be seen")
			}
			return
		}
	}
}

func (r *readers) stop(t *testing.T) (seen []sight) {
	t.Helper()
	close(r.end)
	for range r.n {
		seen = append(seen, receive(t, "a reader", r.ended))
	}
	return seen
}
