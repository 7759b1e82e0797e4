package boltfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

func init() { roles["limit"] = roleLimit }

// roleLimit opens and grows a store with little address space to spare.
func roleLimit(args []string) error {
	if err := limitAddressSpace(1 << 30); err != nil {
		return err
	}
	f, err := boltfile.Open(args[0], boltfile.Options{Init: filled("one")})
	if err != nil {
		return err
	}
	// Nothing is reserved, so growth maps the file anew between the readers.
	var (
		readers sync.WaitGroup
		grown   atomic.Bool
		errs    = make([]error, 4)
	)
	for i := range errs {
		readers.Go(func() {
			for !grown.Load() && errs[i] == nil {
				_, errs[i] = get(f, "id")
			}
		})
	}
	err = grow(f)
	grown.Store(true)
	readers.Wait()
	return errors.Join(err, errors.Join(errs...), f.Close())
}

// limitAddressSpace leaves the process so many bytes more than it has.
func limitAddressSpace(more uint64) error {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(statm), &pages); err != nil {
		return err
	}
	limit := pages*uint64(os.Getpagesize()) + more
	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit})
}

func TestStoreOpensWhereAddressSpaceIsLimited(t *testing.T) {
	if err := start(t, "limit", filepath.Join(t.TempDir(), "s.db")).end(); err != nil {
		t.Error(err)
	}
}
