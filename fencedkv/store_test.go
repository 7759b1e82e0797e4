package fencedkv_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func TestOpenKeepsWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	id := s.ID()
	before := time.Now()
	must(t, s.Resource("r").Put(t.Context(), token(7, "h"), b("k"), b("v")))
	must(t, s.Close())

	s = openAt(t, path, nil)
	if got := s.ID(); got != id || len(got) != 32 {
		t.Errorf("ID after reopening = %q, want %q", got, id)
	}
	if got := s.Path(); got != path {
		t.Errorf("Path = %q, want %q", got, path)
	}
	wantValue(t, s.Resource("r"), "k", "v")
	m, err := s.Resource("r").Highest(t.Context())
	must(t, err)
	if m.Token != token(7, "h") || m.RaisedAt.Before(before.Add(-time.Millisecond)) || m.RaisedAt.After(time.Now()) {
		t.Errorf("mark after reopening = %v, want %v raised between %v and now", m, token(7, "h"), before)
	}
}

func TestEveryStoreHasItsOwnID(t *testing.T) {
	if a, b := open(t, nil).ID(), open(t, nil).ID(); a == b {
		t.Errorf("two stores have the id %s", a)
	}
}

func TestOpenRefusesBadArguments(t *testing.T) {
	_, err := fencedkv.Open("", nil)
	wantIs(t, err, fencedkv.ErrArgument)
	_, err = fencedkv.Open(filepath.Join(t.TempDir(), "s.db"), &fencedkv.Options{Timeout: -1})
	wantIs(t, err, fencedkv.ErrArgument)
}

func TestSecondOpenInOneProcessIsInUse(t *testing.T) {
	s := open(t, nil)
	_, err := fencedkv.Open(s.Path(), nil)
	wantIs(t, err, fencedkv.ErrInUse)
	var inUse *fencedkv.InUseError
	if !errors.As(err, &inUse) || !inUse.ThisProcess || inUse.Path != s.Path() || inUse.Error() == "" {
		t.Errorf("got %#v, want an InUseError of this process for %s", err, s.Path())
	}
}

func TestOtherFilesAreErrFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	must(t, os.WriteFile(path, make([]byte, 64<<10), 0o600))
	_, err := fencedkv.Open(path, nil)
	wantIs(t, err, fencedkv.ErrFormat)
}

func TestCloseIsIdempotentAndFinal(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	must(t, r.Put(t.Context(), token(1, ""), b("k"), b("v")))
	for range 2 {
		must(t, s.Close())
	}
	for name, call := range everyCall(s) {
		if err := call(t.Context()); !errors.Is(err, fencedkv.ErrClosed) {
			t.Errorf("%s after Close: got %v, want ErrClosed", name, err)
		}
	}
}

func TestCloseWaitsForRunningCalls(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	inside, leave := make(chan struct{}), make(chan struct{})
	update, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		update <- r.Update(context.Background(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
			close(inside)
			<-leave
			return tx.Put(b("k"), b("v"))
		})
	}()
	<-inside
	go func() { closed <- s.Close() }()
	// Close has begun when new calls are refused.
	for {
		_, err := r.Get(t.Context(), b("k"))
		if errors.Is(err, fencedkv.ErrClosed) {
			break
		}
		runtime.Gosched()
	}
	select {
	case err := <-closed:
		t.Fatalf("Close returned %v while Update was running", err)
	default:
	}
	close(leave)
	must(t, <-update)
	must(t, <-closed)

	s = openAt(t, s.Path(), nil)
	wantValue(t, s.Resource("r"), "k", "v")
}

func TestConcurrentClosesWaitForOneEnd(t *testing.T) {
	s := open(t, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			// The file is free as soon as any Close has returned.
			if _, err := s.Resource("r").Highest(context.Background()); !errors.Is(err, fencedkv.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
		})
	}
	wg.Wait()
}

func TestResourcesListsEveryMark(t *testing.T) {
	s := open(t, nil)
	for range s.Resources(t.Context()) {
		t.Fatal("a new store has a resource")
	}
	const n = 600 // more than two pages
	claims := make([]fencedkv.Claim, 0, n)
	for i := range n {
		claims = append(claims, fencedkv.Claim{Resource: nameOf(i), Token: fence.Number(uint64(i + 1))})
	}
	must(t, s.Update(t.Context(), claims, func(context.Context, *fencedkv.MultiTx) error { return nil }))

	i := 0
	for info, err := range s.Resources(t.Context()) {
		must(t, err)
		if info.Name != nameOf(i) || info.Highest.Token != fence.Number(uint64(i+1)) || info.Highest.RaisedAt.IsZero() {
			t.Fatalf("resource %d = %+v", i, info)
		}
		// The loop's body may write.
		if i%100 == 0 {
			must(t, s.Resource(info.Name).Put(t.Context(), info.Highest.Token, b("k"), b("v")))
		}
		i++
	}
	if i != n {
		t.Errorf("%d resources listed, want %d", i, n)
	}
	for range s.Resources(t.Context()) {
		break // leaves nothing open: the check at the end closes the store
	}
}

func nameOf(i int) string { return string([]byte{byte(i >> 8), byte(i)}) + "/name" }

// everyCall is each call of a store with good arguments.
func everyCall(s *fencedkv.Store) map[string]func(context.Context) error {
	r := s.Resource("r")
	return map[string]func(context.Context) error{
		"Raise":   func(ctx context.Context) error { return r.Raise(ctx, token(1, "")) },
		"Put":     func(ctx context.Context) error { return r.Put(ctx, token(1, ""), b("k"), b("v")) },
		"Delete":  func(ctx context.Context) error { return r.Delete(ctx, token(1, ""), b("k")) },
		"Get":     func(ctx context.Context) error { _, err := r.Get(ctx, b("k")); return err },
		"Highest": func(ctx context.Context) error { _, err := r.Highest(ctx); return err },
		"Check":   s.Check,
		"Update": func(ctx context.Context) error {
			return r.Update(ctx, token(1, ""), func(context.Context, *fencedkv.Tx) error { return nil })
		},
		"View": func(ctx context.Context) error {
			return r.View(ctx, func(context.Context, *fencedkv.ReadTx) error { return nil })
		},
		"Store.Update": func(ctx context.Context) error {
			return s.Update(ctx, []fencedkv.Claim{{"r", token(1, "")}}, func(context.Context, *fencedkv.MultiTx) error { return nil })
		},
		"Resources": func(ctx context.Context) error {
			for _, err := range s.Resources(ctx) {
				return err
			}
			return nil
		},
		"Exclusive": func(ctx context.Context) error {
			return r.Exclusive(ctx, noLocker{}, func(context.Context, *fencedkv.Held) error { return nil })
		},
	}
}
