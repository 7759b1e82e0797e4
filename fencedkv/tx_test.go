package fencedkv_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func scanError(seq iter.Seq2[fencedkv.KV, error]) error {
	for _, err := range seq {
		return err
	}
	return nil
}

func TestUpdateReadsItsOwnWrites(t *testing.T) {
	r := open(t, nil).Resource("r")
	must(t, r.Put(t.Context(), token(1, ""), b("old"), b("1")))
	must(t, r.Put(t.Context(), token(1, ""), b("gone"), b("1")))
	must(t, r.Update(t.Context(), token(2, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		if tx.Token() != token(2, "") || tx.Resource() != "r" {
			t.Errorf("Token, Resource = %v, %q", tx.Token(), tx.Resource())
		}
		must(t, tx.Put(b("old"), b("2")))
		must(t, tx.Put(b("new"), b("3")))
		must(t, tx.Delete(b("gone")))
		must(t, tx.Delete(b("never there")))
		for key, want := range map[string]string{"old": "2", "new": "3"} {
			if got, err := tx.Get(b(key)); err != nil || string(got) != want {
				t.Errorf("Get(%q) in the function = %q, %v, want %q", key, got, err, want)
			}
		}
		_, err := tx.Get(b("gone"))
		wantIs(t, err, fencedkv.ErrNotFound)
		// Nobody else sees them yet. Another goroutine, as a nested call is
		// refused.
		var wg sync.WaitGroup
		wg.Go(func() {
			if got, err := r.Get(t.Context(), b("old")); err != nil || string(got) != "1" {
				t.Errorf("Get beside the function = %q, %v, want 1", got, err)
			}
			if m, err := r.Highest(t.Context()); err != nil || m.Token != token(1, "") {
				t.Errorf("Highest beside the function = %v, %v, want the mark before", m, err)
			}
		})
		wg.Wait()
		return nil
	}))
	wantValue(t, r, "old", "2")
	wantValue(t, r, "new", "3")
	wantNone(t, r, "gone")
}

const ownPanic = "the function's own"

func TestFailedUpdateAppliesNothing(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	must(t, r.Put(t.Context(), token(1, "a"), b("k"), b("v")))
	own := errors.New("own")
	write := func(tx *fencedkv.Tx) {
		must(t, tx.Put(b("k"), b("w")))
		must(t, tx.Put(b("l"), b("w")))
	}
	exits := map[string]func(*fencedkv.Tx) error{
		"error": func(tx *fencedkv.Tx) error { write(tx); return own },
		"panic": func(tx *fencedkv.Tx) error { write(tx); panic(ownPanic) },
		"exit":  func(tx *fencedkv.Tx) error { write(tx); runtime.Goexit(); return nil },
	}
	for name, exit := range exits {
		t.Run(name, func(t *testing.T) {
			var got error
			var panicked any
			returned := false
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { panicked = recover() }()
				got = r.Update(t.Context(), token(2, "b"), func(_ context.Context, tx *fencedkv.Tx) error { return exit(tx) })
				returned = true
			})
			wg.Wait()
			switch {
			case name == "error" && (!errors.Is(got, own) || got.Error() != own.Error()):
				t.Errorf("got %v, want the function's error as it is", got)
			case name == "panic" && panicked != ownPanic:
				t.Errorf("recovered %v, want the function's panic", panicked)
			case name == "exit" && (returned || panicked != nil):
				t.Errorf("Goexit did not end the goroutine")
			}
			wantValue(t, r, "k", "v")
			wantNone(t, r, "l")
			wantMark(t, r, token(1, "a"))
			// The store is usable: the writer's place is free.
			must(t, s.Resource("other").Put(t.Context(), token(1, ""), b("k"), b(name)))
		})
	}
}

func TestViewPassesErrorsAndPanics(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	own := errors.New("own")
	err := r.View(t.Context(), func(context.Context, *fencedkv.ReadTx) error { return own })
	if !errors.Is(err, own) || err.Error() != own.Error() {
		t.Errorf("got %v, want the function's error as it is", err)
	}
	func() {
		defer func() {
			if got := recover(); got != ownPanic {
				t.Errorf("recovered %v, want the function's panic", got)
			}
		}()
		r.View(t.Context(), func(context.Context, *fencedkv.ReadTx) error { panic(ownPanic) })
	}()
	must(t, r.Put(t.Context(), token(1, ""), b("k"), b("v")))
}

func TestViewIsASnapshot(t *testing.T) {
	r := open(t, nil).Resource("r")
	must(t, r.Put(t.Context(), token(1, ""), b("k"), b("old")))
	// Where no address space is reserved, a write that has to grow the file
	// would wait for the snapshot: leave room in it.
	must(t, r.Put(t.Context(), token(1, ""), b("room"), make([]byte, 1<<20)))
	must(t, r.Delete(t.Context(), token(1, ""), b("room")))
	must(t, r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := r.Put(context.Background(), token(2, ""), b("k"), b("new")); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if got, err := tx.Get(b("k")); err != nil || string(got) != "old" {
			t.Errorf("Get = %q, %v, want the value before the function began", got, err)
		}
		if m, err := tx.Highest(); err != nil || m.Token != token(1, "") {
			t.Errorf("Highest = %v, %v, want the mark before the function began", m, err)
		}
		if tx.Resource() != "r" {
			t.Errorf("Resource = %q", tx.Resource())
		}
		return nil
	}))
	wantValue(t, r, "k", "new")
}

func TestReadersGoOnWhileAnUpdateRuns(t *testing.T) {
	r := open(t, nil).Resource("r")
	must(t, r.Update(t.Context(), token(1, ""), func(context.Context, *fencedkv.Tx) error {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				err := r.View(context.Background(), func(_ context.Context, tx *fencedkv.ReadTx) error {
					_, err := tx.Get(b("k"))
					return err
				})
				if !errors.Is(err, fencedkv.ErrNotFound) {
					t.Errorf("got %v, want ErrNotFound", err)
				}
			})
		}
		wg.Wait()
		return nil
	}))
}

func TestTransactionIsOverWithItsFunction(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	must(t, r.Put(t.Context(), token(1, ""), b("k"), b("v")))
	var tx *fencedkv.Tx
	var rtx *fencedkv.ReadTx
	var mtx *fencedkv.MultiTx
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, in *fencedkv.Tx) error { tx = in; return nil }))
	must(t, r.View(t.Context(), func(_ context.Context, in *fencedkv.ReadTx) error { rtx = in; return nil }))
	must(t, s.Update(t.Context(), []fencedkv.Claim{{"r", token(1, "")}},
		func(_ context.Context, in *fencedkv.MultiTx) error { mtx = in; return nil }))
	checkDone(t, tx, rtx, mtx)
	wantValue(t, r, "k", "v")

	// A scan that has begun ends with an error.
	must(t, r.View(t.Context(), func(_ context.Context, in *fencedkv.ReadTx) error { rtx = in; return nil }))
	var next func() (fencedkv.KV, error, bool)
	must(t, r.View(t.Context(), func(_ context.Context, in *fencedkv.ReadTx) error {
		var stop func()
		next, stop = iter.Pull2(in.Scan(fencedkv.Range{}))
		t.Cleanup(stop)
		_, err, _ := next()
		return err
	}))
	_, err, _ := next()
	wantIs(t, err, fencedkv.ErrTxDone)
}

func TestTransactionEndsUnderConcurrentUse(t *testing.T) {
	r := open(t, nil).Resource("r")
	must(t, r.Put(t.Context(), token(1, ""), b("k"), b("v")))
	var wg sync.WaitGroup
	use := func(get func([]byte) ([]byte, error)) {
		started := make(chan struct{})
		wg.Go(func() {
			for first := true; ; first = false {
				if _, err := get(b("k")); err != nil {
					if !errors.Is(err, fencedkv.ErrTxDone) {
						t.Errorf("got %v, want ErrTxDone", err)
					}
					return
				}
				if first {
					close(started)
				}
			}
		})
		<-started
	}
	must(t, r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error { use(tx.Get); return nil }))
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error { use(tx.Get); return nil }))
	wg.Wait()
}

// TestReadsOutliveTheirPages: bbolt writes new pages over those of old values.
func TestReadsOutliveTheirPages(t *testing.T) {
	r := open(t, nil).Resource("r")
	page := func(c byte) []byte { return bytes.Repeat([]byte{c}, 10_000) }
	must(t, r.Put(t.Context(), token(1, ""), b("k"), page('a')))
	read := map[string][]byte{}
	value, err := r.Get(t.Context(), b("k"))
	must(t, err)
	read["Get"] = value
	must(t, r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
		value, err := tx.Get(b("k"))
		must(t, err)
		read["Get of a snapshot"] = value
		for kv, err := range tx.Scan(fencedkv.Range{}) {
			must(t, err)
			read["Scan"] = kv.Value
		}
		return nil
	}))
	for range 10 {
		must(t, r.Put(t.Context(), token(1, ""), b("k"), page('b')))
	}
	for how, got := range read {
		if !bytes.Equal(got, page('a')) {
			t.Errorf("the value that %s read has become %.3q..., want aaa...", how, got)
		}
	}
}

func TestReadsAndWritesCopy(t *testing.T) {
	r := open(t, nil).Resource("r")
	key, value := b("k"), b("value")
	must(t, r.Put(t.Context(), token(1, ""), key, value))
	value[0], key[0] = 'X', 'X'
	got, err := r.Get(t.Context(), b("k"))
	must(t, err)
	got[0] = 'Y'
	wantValue(t, r, "k", "value")

	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		mine, key := b("mine"), b("l")
		must(t, tx.Put(key, mine))
		mine[0], key[0] = 'X', 'X'
		got, err := tx.Get(b("l"))
		must(t, err)
		got[0] = 'Y'
		for kv, err := range tx.Scan(fencedkv.Range{}) {
			must(t, err)
			kv.Key[0], kv.Value[0] = 'Z', 'Z'
		}
		got, err = tx.Get(b("l"))
		if err != nil || string(got) != "mine" {
			t.Errorf("Get in the function = %q, %v, want mine", got, err)
		}
		return nil
	}))
	wantValue(t, r, "k", "value")
	wantValue(t, r, "l", "mine")
	wantNone(t, r, "X")
}

func TestRefusalDoesNotWaitForWriters(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	must(t, r.Raise(t.Context(), token(34, "b")))
	must(t, s.Resource("other").Update(t.Context(), token(1, ""), func(context.Context, *fencedkv.Tx) error {
		refused := make(chan error, 1)
		go func() { refused <- r.Put(context.Background(), token(33, "a"), b("k"), b("v")) }()
		wantIs(t, <-refused, fence.ErrStale) // or the test hangs
		return nil
	}))
}

func TestTokenThatWasOvertakenInTheQueueIsRefused(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	const n = 32
	var wg sync.WaitGroup
	results := make([]error, n+1)
	for i := 1; i <= n; i++ {
		wg.Go(func() { results[i] = r.Put(t.Context(), token(uint64(i), ""), b("k"), []byte{byte(i)}) })
	}
	wg.Wait()
	for i, err := range results {
		if err != nil && !errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d: %v", i, err)
		}
	}
	if results[n] != nil {
		t.Errorf("the highest token: got %v, want admitted", results[n])
	}
	wantMark(t, r, token(n, ""))
	wantValue(t, r, "k", string([]byte{n}))
}
