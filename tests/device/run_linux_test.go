package device_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// run is the workload on one device with one fault.
type run struct {
	device *device
	open   opener
	fault  Fault

	// lenient asks only for the promises, not for the exact class of what a
	// caller is told: a control need not tell them apart.
	lenient bool

	history  history
	account  Account
	problems []error
	copies   []string // directories of durable
}

func (r *run) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...))
}

// do runs the workload and returns what is wrong with the store.
func (r *run) do(t *testing.T) error {
	t.Helper()
	defer func() { // the next run needs the room
		for _, dir := range r.copies {
			os.RemoveAll(dir)
		}
	}()
	r.device.reset(t, r.fault)
	r.history = history{worlds: []world{newWorld()}}
	for _, steps := range sessions() {
		if !r.session(t, steps) {
			break
		}
	}
	lost := r.durable(t)
	must(t, r.device.call("Lift", struct{}{}, nil))
	r.reopen("after a power failure", lost, nil)
	r.reopen("on the bytes that the process saw", r.device.path(), func(got world) {
		if r.history.maybe == nil {
			return
		}
		// What Open serves is durable from then on.
		r.history = history{worlds: []world{got}}
		r.reopen("after a power failure, once it had been read", r.durable(t), nil)
	})
	return errors.Join(r.problems...)
}

// durable is a copy of the store as a power failure would leave it.
func (r *run) durable(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	r.copies = append(r.copies, dir)
	must(t, r.device.call("Durable", dir, nil))
	return filepath.Join(dir, "store.db")
}

// failures returns those since the last call.
func (r *run) failures(t *testing.T) []Failure {
	t.Helper()
	seen := len(r.account.Failures)
	a, err := r.device.account()
	must(t, err)
	r.account = a
	return a.Failures[seen:]
}

// session opens the store, takes the steps and closes it, and reports whether
// the workload goes on.
func (r *run) session(t *testing.T, steps []step) bool {
	t.Helper()
	s, err := r.open(r.device.path())
	failures := r.failures(t)
	if err != nil {
		r.notOpened(t, err, failures)
		return false
	}
	if len(failures) > 0 && !r.lenient {
		r.problem("Open returned nil although there was %v", failures)
	}
	reader := startReader(s)
	latched := r.steps(t, s, steps)
	if latched && !r.lenient {
		r.refusesAll(s)
	}
	if err := reader.stop(&r.history); err != nil && (!latched || told(err) != lost) && !r.lenient {
		r.problem("a reader was told: %w", err)
	}
	if err := s.close(); err != nil && !r.lenient {
		r.problem("Close: %w", err)
	}
	return !latched
}

// notOpened checks what Open has left when it failed.
func (r *run) notOpened(t *testing.T, err error, failures []Failure) {
	t.Helper()
	if len(failures) == 0 {
		t.Fatalf("Open without a failure: %v", err)
	}
	if r.lenient {
		return
	}
	for _, not := range []error{fencedkv.ErrCorrupt, fencedkv.ErrFormat, fencedkv.ErrInUse} {
		if errors.Is(err, not) {
			r.problem("Open after %v says that the file is at fault: %w", failures, err)
		}
	}
	if !strings.Contains(err.Error(), r.device.path()) || !strings.Contains(err.Error(), failures[0].Errno.Error()) {
		r.problem("Open after %v does not name the file and the reason: %w", failures, err)
	}
	entries, err := os.ReadDir(r.device.dir)
	must(t, err)
	for _, e := range entries {
		if e.Name() != filepath.Base(r.device.path()) {
			r.problem("Open failed after %v and left %s", failures, e.Name())
		}
	}
}

// steps takes the steps, and reports whether the store is out of use.
func (r *run) steps(t *testing.T, s subject, steps []step) (latched bool) {
	t.Helper()
	var again *step // one that found no room
	for _, st := range steps {
		got := told(s.do(st))
		failures := r.failures(t)
		if want := r.expected(st, failures, latched); got != want && !r.lenient {
			r.problem("%s %v after %v: told %s, want %s", st.call, st.claims, failures, got, want)
		}
		r.history.learn(st, got)
		switch {
		case got == lost || got == unknown:
			latched = true
		case got == noRoom:
			again = &st
		case slices.ContainsFunc(failures, Failure.isSync):
			r.reopen("after a power failure, of which nothing was said", r.durable(t), nil)
		}
	}
	if again == nil || latched || r.lenient {
		return latched
	}
	must(t, r.device.call("Lift", struct{}{}, nil))
	again.claims = slices.Clone(again.claims)
	for i, c := range again.claims { // others may have raised the mark meanwhile
		again.claims[i].seq = max(c.seq, r.history.last()[c.resource].seq)
	}
	if got := told(s.do(*again)); got != applied {
		r.problem("with room: %s %v: told %s", again.call, again.claims, got)
	} else {
		r.history.learn(*again, got)
	}
	return false
}

// expected is what the caller of a step is to be told: the outcome classes.
func (r *run) expected(s step, failures []Failure, latched bool) string {
	if latched {
		return lost
	}
	if len(failures) == 0 || len(failures) == 1 && failures[0].Rest && !r.fault.Half {
		if r.history.last().refuses(s) {
			return refused
		}
		return s.want
	}
	f := failures[0]
	switch {
	case f.Meta:
		return unknown
	case (f.Op == opWrite || f.Op == opTruncate) && f.Errno != syscall.EIO:
		return noRoom
	}
	return lost
}

// refusesAll checks that a store that is out of use answers nothing.
func (r *run) refusesAll(s subject) {
	calls := map[string]func() error{
		"a check":        s.check,
		"a refusal":      func() error { return s.do(step{call: raise, claims: []claim{{"a", 1, "stale"}}}) },
		"a higher token": func() error { return s.do(step{call: raise, claims: []claim{{"a", 1000, ""}}}) },
	}
	for _, name := range resources {
		calls["a read of "+name] = func() error { _, err := s.read(name, ""); return err }
	}
	if s, ok := s.(ours); ok {
		ctx, a := context.Background(), s.Resource("a")
		calls["Get"] = func() error { _, err := a.Get(ctx, []byte("k")); return err }
		calls["Highest"] = func() error { _, err := a.Highest(ctx); return err }
		calls["Resources"] = func() error {
			for _, err := range s.Resources(ctx) {
				return err
			}
			return nil
		}
	}
	for name, call := range calls {
		if got := told(call()); got != lost {
			r.problem("%s from a store that has failed: told %s", name, got)
		}
	}
}

// reopen opens the file anew and checks that it holds what it must. read, unless
// it is nil, gets what was read.
func (r *run) reopen(when, path string, read func(world)) {
	s, err := r.open(path)
	if err != nil {
		r.problem("Open %s: %w", when, err)
		return
	}
	defer s.close()
	got, err := readWorld(s)
	if err = errors.Join(err, s.check()); err != nil {
		r.problem("%s: %w", when, err)
		return
	}
	if err := r.history.admits(got); err != nil {
		r.problem("%s: %w", when, err)
	}
	if read != nil {
		read(got)
	}
	for name, c := range got {
		if c.seq < 2 {
			continue
		}
		stale := step{call: raise, claims: []claim{{name, c.seq - 1, ""}}}
		if got := told(s.do(stale)); got != refused {
			r.problem("%s: a token below the mark of %s: told %s", when, name, got)
		}
		good := step{call: put, claims: []claim{{name, c.seq, ""}}, writes: []write{{resource: name, key: "probe", value: when}}}
		if got := told(s.do(good)); got != applied {
			r.problem("%s: a write to %s: told %s", when, name, got)
		}
	}
}
