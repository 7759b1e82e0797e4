package rivals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// Config is one run.
type Config struct {
	Budget time.Duration // of the whole run, about
	Seed   uint64

	// Only and Who limit a run, for a profile: to cases whose name it matches,
	// and to contestants. nil is all. Ratios that need more are left out.
	Only *regexp.Regexp
	Who  []string
}

// Run measures and writes its report to out. A missed bound is no error.
func Run(ctx context.Context, c Config, out io.Writer) (err error) {
	begun := time.Now()
	fmt.Fprintf(out, "%s %s/%s, %d processors, seed %d\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), c.Seed)
	chosen := choose(c.Only, c.Who)
	if len(chosen) == 0 {
		return fmt.Errorf("no case is %v with one of %v", c.Only, c.Who)
	}
	needed := map[string]bool{}
	for _, contest := range chosen {
		needed[contest.service] = true
	}
	f, err := newField(ctx, needed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	var cases []measure.Case
	for _, contest := range chosen {
		cases = append(cases, contest.measured(ctx, f))
	}
	if err := warmUp(ctx, cases, c.Budget/10); err != nil {
		return err
	}
	fmt.Fprintf(out, "started and warmed up in %v\n", time.Since(begun).Round(time.Millisecond))
	results, rounds, err := measure.Rounds(ctx, cases, c.Budget-time.Since(begun), c.Seed,
		func(line string) { fmt.Fprintln(out, line) })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "measured in %d rounds, %v altogether\n\n", rounds, time.Since(begun).Round(time.Second))
	measure.Table(out, results)
	fmt.Fprintln(out)
	measure.Report(out, Ratios(results))
	return nil
}

// warmUp runs everything once, for d altogether: the servers, one of them on a
// JVM, become faster by what they do.
func warmUp(ctx context.Context, cases []measure.Case, d time.Duration) error {
	turns := 0
	for _, c := range cases {
		turns += len(c.Entries)
	}
	for _, c := range cases {
		for _, e := range c.Entries {
			if _, err := e.Run(ctx, d/time.Duration(turns), 0); err != nil {
				return fmt.Errorf("warm up: %s: %s: %w", c.Name, e.Name, err)
			}
		}
	}
	return nil
}
