//go:build unix

package boltfile_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

func init() { roles["shrink"] = roleShrink }

// roleShrink opens a store and lets its file be cut to a length, in one of
// several moments. It must see ErrCorrupt, and live.
func roleShrink(args []string) error {
	path, moment := args[0], args[1]
	length, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	f, err := boltfile.Open(path, boltfile.Options{})
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	cut := func() error { return os.Truncate(path, length) }
	// What is cut off and grown again is zeros, at the old size.
	zero := func() error { return errors.Join(cut(), os.Truncate(path, info.Size())) }
	want := func(what string, err error) error {
		if !errors.Is(err, boltfile.ErrCorrupt) {
			return fmt.Errorf("%s: got %v, want ErrCorrupt", what, err)
		}
		return nil
	}
	sum := crc32.NewIEEE()
	read := func(tx *bolt.Tx) error {
		sum.Reset()
		return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			sum.Write(k)
			sum.Write(v)
			return nil
		})
	}
	if err := f.View(read); err != nil {
		return err
	}
	intact := sum.Sum32()
	switch moment {
	case "before a transaction":
		if err := cut(); err != nil {
			return err
		}
		// What was cut off may be of no page in use. The first write looks.
		if err := f.View(read); err == nil {
			if sum.Sum32() != intact {
				return errors.New("View: it has read what is not there")
			}
		} else if err := want("View", err); err != nil {
			return err
		}
		if err := want("Update", put(f, "k", "v")); err != nil {
			return err
		}
		for range 3 {
			if err := errors.Join(want("View", f.View(read)), want("Update", put(f, "k", "v"))); err != nil {
				return err
			}
		}
		// What was cut off does not come back with the size.
		err := errors.Join(os.Truncate(path, info.Size()), want("View at the old size", f.View(read)))
		if err := errors.Join(err, want("Update at the old size", put(f, "k", "v"))); err != nil {
			return err
		}
	case "in a read":
		err = f.View(func(tx *bolt.Tx) error { return errors.Join(cut(), read(tx)) })
		if err := want("View", err); err != nil {
			return err
		}
	case "in a write":
		err = f.Update(func(tx *bolt.Tx) error { return errors.Join(cut(), tx.Bucket(bucket).Put([]byte("k"), nil)) })
		if err := want("Update", err); err != nil {
			return err
		}
	case "in a commit":
		err = f.Update(func(tx *bolt.Tx) error { return errors.Join(tx.Bucket(bucket).Put([]byte("k"), nil), cut()) })
		if err := errors.Join(want("Update", err), want("the next", put(f, "k", "v"))); err != nil {
			return err
		}
	case "zeros, then a read", "zeros, then a write":
		// bbolt panics in Begin and leaves its own mutexes locked. Whoever waits
		// for them at that moment must go on all the same.
		if err := crowd(f, zero, moment == "zeros, then a write"); err != nil {
			return err
		}
		if err := errors.Join(want("View", f.View(read)), want("Update", put(f, "k", "v"))); err != nil {
			return err
		}
	}
	done := make(chan error, 1)
	go func() { done <- f.Close() }()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-time.After(time.Minute):
		return errors.New("Close does not return")
	}
	if _, err := boltfile.Open(path, boltfile.Options{Timeout: time.Nanosecond}); errors.Is(err, boltfile.ErrInUse) {
		return fmt.Errorf("after Close: %w", err)
	}
	return nil
}

// crowd opens many read transactions, spoils the file, and then begins more and
// ends all of them at once. Every call must return.
func crowd(f *boltfile.File, spoil func() error, writer bool) error {
	var open []*bolt.Tx
	for range 50 {
		tx, err := f.Begin(false)
		if err != nil {
			return err
		}
		open = append(open, tx)
	}
	if writer {
		tx, err := f.Begin(true)
		if err != nil {
			return err
		}
		open = append(open, tx)
	}
	if err := spoil(); err != nil {
		return err
	}
	if writer {
		// The writer to come must meet the panic first: no reader begins.
		errs := make(chan error)
		go func() { errs <- put(f, "k", "v") }()
		f.Rollback(open[len(open)-1])
		if err := <-errs; !errors.Is(err, boltfile.ErrCorrupt) {
			return fmt.Errorf("the second writer: got %v, want ErrCorrupt", err)
		}
	}
	var wg sync.WaitGroup
	errs := make(chan error, 2*len(open))
	for _, tx := range open {
		wg.Go(func() { errs <- f.Rollback(tx) })
		wg.Go(func() {
			if _, err := f.Begin(false); !errors.Is(err, boltfile.ErrCorrupt) {
				errs <- fmt.Errorf("Begin: got %v, want ErrCorrupt", err)
			}
		})
	}
	wg.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

func TestFileCutShortWhileOpenIsErrCorruptAndTheProcessLives(t *testing.T) {
	path, sound := manyPages(t)
	cur, _ := metas(t, sound)
	for _, c := range []struct {
		moment  string
		lengths []int
	}{
		{"before a transaction", []int{0, 1, cur.pageSize, 3 * cur.pageSize, len(sound) / 2, len(sound) - 1}},
		{"in a read", []int{0, cur.pageSize, 3 * cur.pageSize}},
		{"in a write", []int{0, cur.pageSize, 3 * cur.pageSize}},
		{"in a commit", []int{0, cur.pageSize}},
		{"zeros, then a read", []int{0, 1}},
		{"zeros, then a write", []int{0, 1}},
	} {
		for _, n := range c.lengths {
			writeFile(t, path, sound)
			if err := start(t, "shrink", path, c.moment, strconv.Itoa(n)).end(); err != nil {
				t.Errorf("cut to %d bytes %s: %v", n, c.moment, err)
			}
		}
	}
	wantLockFree(t, path, sound)
}
