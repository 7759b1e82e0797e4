package rivals

import (
	"context"
	"errors"
	"fmt"
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

// contest is one case: who does what on which service.
type contest struct {
	name, service string
	run           run
	who           []string
}

var contests = []contest{
	{"acquire-redis", "redis", acquiring, []string{"ours", "redislock", "redsync"}},
	{"acquire-redlock", "redlock", acquiring, []string{"ours", "redsync"}},
	{"acquire-etcd", "etcd", acquiring, []string{"ours", "mutex", "session"}},
	{"acquire-zk", "zk", acquiring, []string{"ours", "lock"}},
	{"handover-redis", "redis", handing, []string{"ours", "redislock", "redsync"}},
	{"handover-etcd", "etcd", handing, []string{"ours", "mutex"}},
	{"handover-zk", "zk", handing, []string{"ours", "lock"}},
}

// choose returns the contests whose name only matches, between who alone; nil
// is all.
func choose(only *regexp.Regexp, who []string) []contest {
	var chosen []contest
	for _, c := range contests {
		if only != nil && !only.MatchString(c.name) {
			continue
		}
		if len(who) > 0 {
			c.who = slices.DeleteFunc(slices.Clone(c.who), func(name string) bool { return !slices.Contains(who, name) })
		}
		if len(c.who) > 0 {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// run measures some contenders of one library for d. Locks are taken with ctx,
// which goes on when d is over: what a library leaves behind when it is
// cancelled must not disturb the next turn.
type run func(ctx context.Context, all []contestant.Contender, d time.Duration, seed uint64) (measure.Sample, error)

// patience is how long a turn may last after its time is over.
const patience = time.Minute

var errNoGrant = fmt.Errorf("no grant %v after the turn was over", patience)

func (c contest) measured(ctx context.Context, f *field) measure.Case {
	all := measure.Case{Name: c.name}
	for _, name := range c.who {
		all.Entries = append(all.Entries, measure.Entry{Name: name, Run: func(_ context.Context, d time.Duration, seed uint64) (measure.Sample, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, d+patience, errNoGrant)
			defer cancel()
			return c.run(ctx, f.contenders[key(c.service, name)], d, seed)
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
