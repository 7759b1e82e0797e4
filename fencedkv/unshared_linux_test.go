package fencedkv_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// whereNothingIsShared runs a test again in a process of its own with so little
// address space that none is reserved. A commit that grows the file then waits for
// the reads that go on, and later ones wait for it.
func whereNothingIsShared(t *testing.T, test func(t *testing.T)) {
	const child = "FENCEDKV_TEST_UNSHARED"
	if os.Getenv(child) == "" {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("in a process of its own: %v, %v\n%s", err, context.Cause(ctx), out)
		}
		return
	}
	statm, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	var pages uint64
	_, err = fmt.Fscan(bytes.NewReader(statm), &pages)
	must(t, err)
	limit := pages*uint64(os.Getpagesize()) + 1<<30
	must(t, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}))
	test(t)
}

func TestCheckGoesOnBesideAFileThatIsMappedAnew(t *testing.T) {
	whereNothingIsShared(t, func(t *testing.T) {
		s, err := fencedkv.Open(filepath.Join(t.TempDir(), "s.db"), nil)
		must(t, err)
		r := s.Resource("r")
		checking, checked := make(chan struct{}, 1), make(chan error)
		grown, end := context.WithCancel(t.Context())
		defer end()
		go func() {
			for grown.Err() == nil {
				select {
				case checking <- struct{}{}:
				default:
				}
				if err := s.Check(context.Background()); err != nil {
					checked <- err
					return
				}
			}
			checked <- nil
		}()
		for i := range 10 {
			<-checking
			for j := range 1 << i { // each time it is twice as long
				must(t, r.Put(t.Context(), token(1, "a"), fmt.Append(nil, i, j), make([]byte, 16<<10)))
			}
		}
		end()
		must(t, <-checked)
		must(t, s.Close())
	})
}
