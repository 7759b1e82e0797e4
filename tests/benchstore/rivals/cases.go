package rivals

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchstore/contestant"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// writers are how many of them write at the same time.
var writers = []int{1, 8, 64, 256}

const (
	besideWriters = 8  // writers beside which it is read
	readSlices    = 8  // of a turn of reads
	readsAtOnce   = 64 // reads between two looks at the clock
)

// cases returns everything that is measured.
func cases(ctx context.Context, f *field) []measure.Case {
	var all []measure.Case
	for _, n := range writers {
		all = append(all, f.putting(ctx, n))
	}
	for _, n := range []int{1, 2} {
		all = append(all, f.reading(ctx, n, 0), f.reading(ctx, n, besideWriters))
	}
	return append(all, f.refusing(ctx), f.besideStale(ctx), f.spreading(ctx), f.opening())
}

// choose returns the cases that only matches, with who in them alone.
func choose(all []measure.Case, only *regexp.Regexp, who []string) []measure.Case {
	var chosen []measure.Case
	for _, c := range all {
		if only != nil && !only.MatchString(c.Name) {
			continue
		}
		if len(who) > 0 {
			c.Entries = slices.DeleteFunc(c.Entries, func(e measure.Entry) bool { return !slices.Contains(who, e.Name) })
		}
		if len(c.Entries) > 0 {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// group measures the first of some groups that work at the same time.
func group(groups ...measure.Group) func(context.Context, time.Duration, uint64) (measure.Sample, error) {
	return func(ctx context.Context, d time.Duration, seed uint64) (measure.Sample, error) {
		samples, err := measure.Run(ctx, d, seed, groups...)
		if err != nil {
			return measure.Sample{}, err
		}
		return samples[0], nil
	}
}

// putting has so many writers overwrite keys of one resource.
func (f *field) putting(ctx context.Context, n int) measure.Case {
	c := measure.Case{Name: fmt.Sprintf("put-%d", n)}
	for _, rival := range contestant.All {
		op := puts(ctx, f.stores[rival.Name], f.hot)
		c.Entries = append(c.Entries, measure.Entry{Name: rival.Name, Run: group(measure.Group{Workers: n, Op: op})})
	}
	return c
}

// reading has so many readers read what so many writers overwrite.
func (f *field) reading(ctx context.Context, readers, writers int) measure.Case {
	c := measure.Case{Name: fmt.Sprintf("get-%d", readers), Slices: readSlices}
	if writers > 0 {
		c.Name += fmt.Sprintf("-beside-%d", writers)
	}
	for _, name := range []string{"ours", "bolt"} {
		s := f.stores[name]
		c.Entries = append(c.Entries, measure.Entry{Name: name, Run: group(
			measure.Group{Workers: readers, Every: readsAtOnce, Op: gets(ctx, s, f.hot)},
			measure.Group{Workers: writers, Op: puts(ctx, s, f.hot)},
		)})
	}
	return c
}

// spreading has 64 writers overwrite keys of 100,000 resources.
func (f *field) spreading(ctx context.Context) measure.Case {
	const n = 64
	c := measure.Case{Name: fmt.Sprintf("spread-%d", n)}
	open := map[string]contestant.Open{"ours": contestant.OpenOurs, "bolt": contestant.OpenBolt}
	stores := map[string]contestant.Store{}
	c.Before = func() error {
		for name, open := range open {
			s, err := open(f.large())
			if err != nil {
				return err
			}
			stores[name] = s
		}
		return nil
	}
	c.After = func() (err error) {
		for name, s := range stores {
			if e := s.Close(); err == nil {
				err = e
			}
			delete(stores, name)
		}
		return err
	}
	keys := spread(f.each)
	for _, name := range []string{"ours", "bolt"} {
		c.Entries = append(c.Entries, measure.Entry{
			Name: name,
			Run: func(run context.Context, d time.Duration, seed uint64) (measure.Sample, error) {
				return group(measure.Group{Workers: n, Op: puts(ctx, stores[name], keys)})(run, d, seed)
			},
		})
	}
	return c
}
