package rivals

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchlocks/contestant"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

const (
	contenders = 8
	critical   = 20 * time.Microsecond // how long each holds the lock
)

// cases returns everything that is measured.
func cases(ctx context.Context, f *field) []measure.Case {
	all := []measure.Case{
		{Name: "acquire-redis", Entries: f.entries(ctx, "redis", acquiring, "ours", "redislock", "redsync")},
		{Name: "acquire-redlock", Entries: f.entries(ctx, "redlock", acquiring, "redsync")},
		{Name: "acquire-etcd", Entries: f.entries(ctx, "etcd", acquiring, "ours", "mutex", "session")},
		{Name: "acquire-zk", Entries: f.entries(ctx, "zk", acquiring, "ours", "lock")},
		{Name: "handover-redis", Entries: f.entries(ctx, "redis", handing, "ours", "redislock", "redsync")},
		{Name: "handover-etcd", Entries: f.entries(ctx, "etcd", handing, "ours", "mutex")},
		{Name: "handover-zk", Entries: f.entries(ctx, "zk", handing, "ours", "lock")},
	}
	return all
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

// run measures some contenders of one library for d. Locks are taken with ctx,
// which goes on when d is over: what a library leaves behind when it is
// cancelled must not disturb the next turn.
type run func(ctx context.Context, all []contestant.Contender, d time.Duration, seed uint64) (measure.Sample, error)

func (f *field) entries(ctx context.Context, service string, run run, names ...string) []measure.Entry {
	var all []measure.Entry
	for _, name := range names {
		all = append(all, measure.Entry{Name: name, Run: func(_ context.Context, d time.Duration, seed uint64) (measure.Sample, error) {
			return run(ctx, f.contenders[key(service, name)], d, seed)
		}})
	}
	return all
}

// acquiring has one contender take and give back a lock.
func acquiring(ctx context.Context, all []contestant.Contender, d time.Duration, seed uint64) (measure.Sample, error) {
	samples, err := measure.Run(ctx, d, seed, measure.Group{Workers: 1, Op: func(context.Context, int, *rand.Rand) error {
		unlock, err := all[0].Lock(ctx, "alone")
		if err != nil {
			return err
		}
		return unlock(ctx)
	}})
	if err != nil {
		return measure.Sample{}, err
	}
	return samples[0], nil
}

var errTwoHolders = errors.New("two contenders held the lock at the same time")

// handing has all contenders take the same lock. A handover is a grant to
// another contender than the one before: a library whose waiters sleep grants
// the lock again and again to whoever has just given it back. Only what happens
// within d counts, so that long pauses do not cost a library anything when the
// others have gone.
func handing(ctx context.Context, all []contestant.Contender, d time.Duration, seed uint64) (measure.Sample, error) {
	var (
		held      atomic.Bool
		handovers int // this and the next are the holder's
		last      = -1
		grants    = make([]int, len(all))
	)
	samples, err := measure.Run(ctx, d, seed, measure.Group{Workers: len(all), Op: func(running context.Context, w int, _ *rand.Rand) error {
		unlock, err := all[w].Lock(ctx, "shared")
		if err != nil {
			return err
		}
		if !held.CompareAndSwap(false, true) {
			return errTwoHolders
		}
		if running.Err() == nil {
			grants[w]++
			if w != last {
				handovers++
			}
			last = w
		}
		for began := time.Now(); time.Since(began) < critical; {
		}
		held.Store(false)
		return unlock(ctx)
	}})
	if err != nil {
		return measure.Sample{}, err
	}
	s := samples[0]
	s.Ops, s.Elapsed, s.Fewest, s.Most = handovers, d, slices.Min(grants), slices.Max(grants)
	return s, nil
}
