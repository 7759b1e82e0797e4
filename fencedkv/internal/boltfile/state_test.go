package boltfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// reservable: address space can be reserved here, so that readers share a State.
const reservable = strconv.IntSize == 64 && runtime.GOOS != "windows"

// user is a use of a State.
type user struct {
	*boltfile.State
	over bool
}

func acquire(t *testing.T, f *boltfile.File) *user {
	t.Helper()
	s, err := f.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	u := &user{State: s}
	// A test that fails must not leave a use behind, for which Close waits.
	t.Cleanup(func() {
		if !u.over {
			u.Release()
		}
	})
	return u
}

func release(t *testing.T, u *user) {
	t.Helper()
	u.over = true
	if err := u.Release(); err != nil {
		t.Error(err)
	}
}

// wantNoState wants Acquire to fail.
func wantNoState(t *testing.T, f *boltfile.File, want error) {
	t.Helper()
	s, err := f.Acquire()
	if err == nil {
		s.Release()
	}
	if err == nil || !errors.Is(err, want) {
		t.Errorf("Acquire: got %v, want %v", err, want)
	}
}

func wantRead(t *testing.T, s *user, key, want string) {
	t.Helper()
	if got, err := s.Read(string(bucket), key); err != nil || got != want {
		t.Fatalf("%s = %.20q, %v; want %.20q", key, got, err, want)
	}
}

func wantLast(t *testing.T, f *boltfile.File, key, want string) {
	t.Helper()
	s := acquire(t, f)
	defer release(t, s)
	wantRead(t, s, key, want)
}

// TestStatesAreDurable holds a commit open after bbolt shows it, and lets it
// succeed or fail. Readers get the state before it, or wait for it if no State is
// shared, and get the new one once the commit has returned.
func TestStatesAreDurable(t *testing.T) {
	for _, shared := range []bool{true, false} {
		for _, fails := range []error{nil, syscall.EIO} {
			t.Run(fmt.Sprintf("shared %v, the commit returns %v", shared, fails), func(t *testing.T) {
				if shared && !reservable {
					shared = false
				}
				synctest.Test(t, func(t *testing.T) {
					var shown, end chan struct{}
					o := boltfile.Options{Init: filled("old"), Commit: func(tx *bolt.Tx) error {
						err := tx.Commit()
						close(shown)
						<-end
						return errors.Join(err, fails)
					}}
					if !shared {
						o = boltfile.WithOps(o, boltfile.Ops{Reserve: func(*os.File, int64) int { return 0 }})
					}
					f := open(t, filepath.Join(t.TempDir(), "s.db"), o)
					if f.Shares() != shared {
						t.Fatalf("a State is shared: %v, want %v", f.Shares(), shared)
					}
					shown, end = make(chan struct{}), make(chan struct{})
					committed := make(chan error, 1)
					go func() { committed <- put(f, "id", "new") }()
					<-shown
					type result struct {
						value string
						err   error
					}
					read := make(chan result, 1)
					go func() {
						s, err := f.Acquire()
						if err != nil {
							read <- result{"", err}
							return
						}
						defer s.Release()
						value, err := s.Read(string(bucket), "id")
						read <- result{value, err}
					}()
					synctest.Wait()
					select {
					case r := <-read:
						if !shared || r.err != nil || r.value != "old" {
							t.Errorf("a reader got %q, %v before the commit had ended", r.value, r.err)
						}
						close(end)
					default:
						if shared {
							t.Error("a reader waits for the commit")
						}
						close(end)
						if r := <-read; fails == nil && (r.err != nil || r.value != "new") || fails != nil && !errors.Is(r.err, fails) {
							t.Errorf("the reader that waited got %q, %v", r.value, r.err)
						}
					}
					if err := <-committed; !errors.Is(err, fails) {
						t.Fatalf("the commit: %v, want %v", err, fails)
					}
					if fails == nil {
						wantLast(t, f, "id", "new")
					} else {
						wantNoState(t, f, fails)
					}
				})
			})
		}
	}
}

func TestStateKeepsWhatItShowsUntilItsRelease(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "s.db"), roomy(boltfile.Options{Init: filled("0")}))
	f.DB().NoSync = true
	var states []*user
	for i := range 200 {
		states = append(states, acquire(t, f))
		mustPut(t, f, "id", strconv.Itoa(i+1))
		mustPut(t, f, "more", string(make([]byte, 3000)))
	}
	for i, s := range states {
		wantRead(t, s, "id", strconv.Itoa(i))
		release(t, s)
	}
	wantLast(t, f, "id", "200")
}

// TestReadersAndWritersOfStates has readers beside a writer. A State holds one
// commit whole, and none that is older than one that had returned before.
func TestReadersAndWritersOfStates(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("0")})
	f.DB().NoSync = true
	var last atomic.Int64
	var wg sync.WaitGroup
	write := func(i int) error {
		return f.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket(bucket)
			value := fmt.Appendf(nil, "%0*d", 1+i%5000, i)
			return errors.Join(b.Put([]byte("a"), value), b.Put([]byte("b"), value))
		})
	}
	if err := write(0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wg.Go(func() {
			for last.Load() < 1000 {
				least := last.Load()
				s, err := f.Acquire()
				if err != nil {
					t.Error(err)
					return
				}
				a, errA := s.Read(string(bucket), "a")
				b, errB := s.Read(string(bucket), "b")
				n, err := strconv.ParseInt(a, 10, 64)
				if err := errors.Join(errA, errB, err, s.Release()); err != nil || a != b || n < least {
					t.Errorf("read %.20q and %.20q after commit %d had returned: %v", a, b, least, err)
					return
				}
			}
		})
	}
	for i := range 1000 {
		if err := write(i + 1); err != nil {
			t.Fatal(err)
		}
		last.Store(int64(i + 1))
	}
	wg.Wait()
}

// A State keeps the pages that the commit after it has freed. They are used again
// one commit later.
func TestFileDoesNotGrowWhenOneKeyIsWrittenAgainAndAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	f := open(t, path, boltfile.Options{Init: filled("0")})
	f.DB().NoSync = true
	var size int64
	for i := range 10_000 {
		mustPut(t, f, "id", strconv.Itoa(i)+string(make([]byte, i%1000*10)))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if i == 2000 { // it has held the largest value
			size = info.Size()
		}
		if i > 2000 && info.Size() > size {
			t.Fatalf("after %d commits the file has %d bytes, after 2000 it had %d", i, info.Size(), size)
		}
	}
}

func TestStateIsThereAfterACommitWithoutRoom(t *testing.T) {
	full := false
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("old"), Commit: func(tx *bolt.Tx) error {
		if full {
			return errors.Join(tx.Rollback(), &fs.PathError{Op: "write", Path: "s.db", Err: syscall.ENOSPC})
		}
		return tx.Commit()
	}})
	before := acquire(t, f)
	full = true
	var failed *boltfile.CommitError
	if err := put(f, "id", "new"); !errors.As(err, &failed) || failed.Outcome != boltfile.NoRoom {
		t.Fatalf("got %v, want no room", err)
	}
	wantRead(t, before, "id", "old")
	wantLast(t, f, "id", "old")
	full = false
	mustPut(t, f, "id", "new")
	wantRead(t, before, "id", "old")
	wantLast(t, f, "id", "new")
	release(t, before)
}

func TestStateThatIsOpenCanBeReadAfterTheFileHasFailed(t *testing.T) {
	fails := false
	f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.Options{Init: filled("old"), Commit: func(tx *bolt.Tx) error {
		if err := tx.Commit(); err != nil || !fails {
			return err
		}
		return syscall.EIO
	}})
	s := acquire(t, f)
	fails = true
	if err := put(f, "id", "new"); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	wantNoState(t, f, syscall.EIO)
	wantRead(t, s, "id", "old")
	release(t, s)
}

func TestCloseWaitsForStatesAndForNoOtherReason(t *testing.T) {
	var shown, end chan struct{}
	f := open(t, filepath.Join(t.TempDir(), "s.db"), roomy(boltfile.Options{Init: filled("old"), Commit: func(tx *bolt.Tx) error {
		err := tx.Commit()
		if end != nil {
			close(shown)
			<-end
		}
		return err
	}}))
	s := acquire(t, f)
	mustPut(t, f, "id", "new") // s is no longer the one that is shared
	shown, end = make(chan struct{}), make(chan struct{})
	committed, closed := make(chan error, 1), make(chan error, 1)
	go func() { committed <- put(f, "id", "last") }()
	<-shown
	var released atomic.Bool
	go func() {
		err := f.Close()
		if !released.Load() {
			err = errors.Join(err, errors.New("it returned while a State was open"))
		}
		closed <- err
	}()
	for range 1000 { // let it come to where it waits for the commit
		runtime.Gosched()
	}
	close(end)
	if err := <-committed; err != nil {
		t.Error(err)
	}
	wantRead(t, s, "id", "old")
	released.Store(true)
	release(t, s)
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("Close: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Close does not return")
	}
	wantNoState(t, f, berrors.ErrDatabaseNotOpen)
}

// TestGrowthDoesNotWaitForTheSharedState lets a file outgrow what may be shared,
// and one that shares nothing be mapped anew at every step.
func TestGrowthDoesNotWaitForTheSharedState(t *testing.T) {
	for name, reserve := range map[string]int64{"none is reserved": 0, "little is": 2<<30 + 16<<20} {
		t.Run(name, func(t *testing.T) {
			if reserve > 0 && !reservable {
				return
			}
			f := open(t, filepath.Join(t.TempDir(), "s.db"), boltfile.WithOps(boltfile.Options{Init: filled("0")},
				boltfile.Ops{Reserve: func(*os.File, int64) int { return int(reserve) }}))
			f.DB().NoSync = true
			if f.Shares() != (reserve > 0) {
				t.Errorf("a State is shared: %v", f.Shares())
			}
			for i := range 20 {
				value := string(make([]byte, 1<<20))
				mustPut(t, f, "key "+strconv.Itoa(i), value)
				wantLast(t, f, "key "+strconv.Itoa(i), value)
			}
			if f.Shares() {
				t.Error("a State is shared although the next commit could need more than is reserved")
			}
		})
	}
}
