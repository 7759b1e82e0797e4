package faults_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/tests/servers"
)

var seed = flag.Uint64("seed", 0, "seed of the sample of cells; 0 takes the clock")

const (
	// atOnce is how many cells run at the same time. Most of it they wait for leases
	// to run out.
	atOnce = "8"

	// tries is how often a cell is run at most that the machine was too busy for.
	tries = 5

	// some is how many cells there are in all for one of a sample, on average.
	some = 6
)

func TestMain(m *testing.M) {
	if text := os.Getenv(accessVariable); text != "" {
		if err := play(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	// The default is as many as there are processors.
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	servers.Main(m)
}

// TestEveryFaultAtEveryMoment is the matrix.
func TestEveryFaultAtEveryMoment(t *testing.T) {
	chosen := choose(t)
	store, err := fencedkv.Open(filepath.Join(t.TempDir(), "store.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	running := newPulse()
	results := &table{}
	t.Cleanup(func() {
		running.stop()
		t.Log("\n" + results.String())
		if err := errors.Join(store.Check(context.Background()), store.Close()); err != nil {
			t.Errorf("the store: %v", err)
		}
	})
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			calm := a.start(t)
			for _, f := range faults {
				some := chosen[a.name][f.name]
				if len(some) == 0 {
					continue
				}
				if !f.harms(calm) {
					for _, m := range some {
						t.Run(f.name+"/"+m.name, func(t *testing.T) {
							t.Parallel()
							results.set(a.name, m.name, f.name, repeat(t, calm, m, f, store, running))
						})
					}
					continue
				}
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					harmed := a.start(t) // one after the other, on servers of their own
					for _, m := range some {
						t.Run(m.name, func(t *testing.T) {
							results.set(a.name, m.name, f.name, repeat(t, harmed, m, f, store, running))
						})
					}
				})
			}
		})
	}
}

// choose returns the moments to try, by adapter and fault: all, or a sample. The flag
// -run then has its say.
func choose(t *testing.T) map[string]map[string][]moment {
	s := cmp.Or(*seed, uint64(time.Now().UnixNano()))
	rnd := rand.New(rand.NewPCG(s, 0))
	all := os.Getenv("FAULTS") == "all" || strings.Contains(flag.Lookup("test.run").Value.String(), "/")
	if !all {
		t.Logf("a sample; repeat it with -seed %d, or run all with FAULTS=all", s)
	}
	chosen := map[string]map[string][]moment{}
	next := rnd.IntN(some)
	for _, a := range adapters {
		chosen[a.name] = map[string][]moment{}
		for _, f := range faults {
			for _, m := range moments {
				if whyNot(a.name, m.name, f.name) != "" {
					continue
				}
				if next--; all || next < 0 {
					chosen[a.name][f.name] = append(chosen[a.name][f.name], m)
				}
				if next < 0 {
					next = rnd.IntN(2*some - 1)
				}
			}
		}
	}
	return chosen
}

// repeat runs a cell, and again if the machine was too busy for it.
func repeat(t *testing.T, s *service, m moment, f fault, store *fencedkv.Store, running *pulse) verdict {
	t.Helper()
	for try := 1; ; try++ {
		lock := fmt.Sprintf("%s-%s-%s-%d", s.Service, m.name, strings.ReplaceAll(f.name, " ", "-"), try)
		begun := time.Now()
		v := once(t, s, m, f, store, lock)
		v.stall = max(v.stall, running.stall(begun))
		switch {
		case len(v.errs) == 0:
			return v
		case try < tries && v.excused():
			t.Logf("again, because a process did not run, or the service not answer, for %v: %v", v.stall, errors.Join(v.errs...))
			continue
		}
		t.Error(errors.Join(v.errs...))
		return v
	}
}

func once(t *testing.T, s *service, m moment, f fault, store *fencedkv.Store, lock string) verdict {
	t.Helper()
	r, err := newRun(t, s, m, f, store, lock)
	if err == nil {
		err = m.lead(r)
	}
	if err == nil {
		err = f.strike(r)
		r.over = time.Now()
	}
	if err == nil {
		err = r.settle()
	}
	if err != nil && f.harms(s) {
		s.each(func(srv servers.Server) { srv.Restart(t) }) // it may stand still
	}
	var v verdict
	if err == nil {
		v = r.verify()
	} else if r.victim != nil {
		err = fmt.Errorf("%w\nthe victim told:%s", err, r.victim.told())
	}
	if r.observer != nil && !f.harms(s) {
		v.stall = max(v.stall, r.observer.slowest())
	}
	if err := errors.Join(err, r.end()); err != nil {
		v.errs = append(v.errs, err)
	}
	return v
}
