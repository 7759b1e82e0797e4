package rivals

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchstore/disk"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// Config is one run.
type Config struct {
	Dir    string        // where the stores are made; it must not be in memory
	Budget time.Duration // of the whole run, about
	Seed   uint64
	Plot   string // the picture's path; empty is none

	// Only and Who limit a run, for a profile: to cases whose name it matches,
	// and to contestants. nil is all. Ratios that need more are left out.
	Only *regexp.Regexp
	Who  []string
}

const (
	fullRun   = 4 * time.Minute // from here on the large file is full
	eachFull  = 10              // keys of each resource in the full large file
	eachShort = 1
)

// Run measures and writes its report to out. A missed bound is no error.
func Run(ctx context.Context, c Config, out io.Writer) (err error) {
	begun := time.Now()
	if err := disk.Check(c.Dir); err != nil {
		return err
	}
	synced, err := disk.SyncTime(c.Dir)
	if err != nil {
		return fmt.Errorf("time a sync: %w", err)
	}
	fmt.Fprintf(out, "fdatasync median %v in %s\n", synced.Round(time.Microsecond), c.Dir)
	fmt.Fprintf(out, "%s %s/%s, %d processors, seed %d, values of %d bytes\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), c.Seed, valueSize)

	each := eachShort
	if c.Budget >= fullRun {
		each = eachFull
	}
	f, err := newField(ctx, c.Dir, each, c.Seed)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.close(); err == nil {
			err = e
		}
	}()
	fmt.Fprintf(out, "loaded in %v: %d keys each; the large file has %d resources and %d keys\n",
		time.Since(begun).Round(time.Millisecond), hotKeys, spreadResources, spreadResources*each)

	chosen := choose(cases(ctx, f), c.Only, c.Who)
	if len(chosen) == 0 {
		return fmt.Errorf("no case is %v with one of %v", c.Only, c.Who)
	}
	results, rounds, err := measure.Rounds(ctx, chosen, c.Budget-time.Since(begun), c.Seed,
		func(line string) { fmt.Fprintln(out, line) })
	if err != nil {
		return err
	}
	allocs, err := allocations(refusals(ctx, f.ours(), f.hot))
	if err != nil {
		return err
	}
	if c.Plot != "" {
		if err := draw(c.Plot, results, synced); err != nil {
			return fmt.Errorf("draw %s: %w", c.Plot, err)
		}
		fmt.Fprintf(out, "drew %s\n", c.Plot)
	}
	fmt.Fprintf(out, "measured in %d rounds, %v altogether\n", rounds, time.Since(begun).Round(time.Second))
	report(out, results, synced, allocs)
	return nil
}
