package crash_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// load is what a child does: many writers, each with a key of its own, which also
// write a shared one and read.
type load struct {
	Kind       string // of the store
	Path       string
	Seed       uint64
	Generation int // of the children on one store; makes keys of its own
	Writers    int
	Each       int // writes of a writer; 0 is no end
	MaxValue   int
	Notes      string // the file for what is told; "" is standard output
}

const resources = 3

func resourceName(n int) string { return fmt.Sprint("resource-", n) }

func (l load) ownKey(generation, writer int) string {
	return fmt.Sprintf("own-%d-%d", generation, writer)
}

// run tells before and after each call what the promises are made of.
func (l load) run(s store, tell func(...note) error) error {
	var next [resources]atomic.Uint64
	for r := range resources {
		if err := l.readAll(s, r, tell, &next[r]); err != nil {
			return err
		}
	}
	failures := make(chan error, l.Writers)
	var all sync.WaitGroup
	for w := range l.Writers {
		all.Go(func() {
			one := writer{load: l, store: s, tell: tell, next: &next, id: w,
				rnd: rand.New(rand.NewPCG(l.Seed, uint64(l.Generation*1000+w)))}
			for i := 0; l.Each == 0 || i < l.Each; i++ {
				if err := one.step(); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failures)
	return <-failures
}

// readAll tells what a predecessor has left, and raises the mark.
func (l load) readAll(s store, resource int, tell func(...note) error, next *atomic.Uint64) error {
	name := resourceName(resource)
	m, err := s.highest(name)
	if err != nil {
		return err
	}
	next.Store(m.Seq + 1)
	if err := tell(note{what: marked, resource: name, key: "-", seq: m.Seq}); err != nil {
		return err
	}
	keys := []string{"shared"}
	for g := range l.Generation {
		for w := range l.Writers {
			keys = append(keys, l.ownKey(g, w))
		}
	}
	for _, key := range keys {
		if err := readKey(s, name, key, tell); err != nil {
			return err
		}
	}
	first := note{resource: name, key: "-", n: uint64(l.Generation*1000+999) << 32, seq: m.Seq + 1}
	return writeTold(s, tell, first)
}

type writer struct {
	load  load
	store store
	tell  func(...note) error
	next  *[resources]atomic.Uint64
	id    int
	n     uint64
	rnd   *rand.Rand
}

// seq is mostly that of the present holder, at times of a new one or of one that
// has been superseded.
func (w *writer) seq(resource int) uint64 {
	switch w.rnd.IntN(10) {
	case 0:
		return w.next[resource].Add(1)
	case 1:
		return w.next[resource].Load() - 1
	}
	return w.next[resource].Load()
}

func (w *writer) step() error {
	r := w.rnd.IntN(resources)
	w.n++
	n := note{resource: resourceName(r), key: w.load.ownKey(w.load.Generation, w.id), n: w.n, seq: w.seq(r), size: w.rnd.IntN(w.load.MaxValue)}
	unique := uint64(w.load.Generation*1000+w.id)<<32 | w.n
	switch w.rnd.IntN(12) {
	case 0:
		n.key, n.n, n.size = "-", unique, 0
	case 1, 2:
		n.key, n.n = "shared", unique
	case 3, 4:
		n.resource, n.key = resourceName(0), fmt.Sprintf("pair-%d-%d", w.load.Generation, w.id)
		n.seq = w.seq(0)
		other := n
		other.resource, other.seq = resourceName(1), w.seq(1)
		return writeTold(w.store, w.tell, n, other)
	case 5:
		return readKey(w.store, n.resource, w.load.ownKey(w.load.Generation, w.rnd.IntN(w.load.Writers)), w.tell)
	case 6:
		return readKey(w.store, n.resource, "shared", w.tell)
	}
	return writeTold(w.store, w.tell, n)
}

func writeTold(s store, tell func(...note) error, writes ...note) error {
	told := func(what string) []note {
		var all []note
		for _, n := range writes {
			all = append(all, n.as(what))
		}
		return all
	}
	if err := tell(told(begun)...); err != nil {
		return err
	}
	err := s.write(writes...)
	if rejected := (*fence.RejectedError)(nil); errors.As(err, &rejected) {
		return tell(note{what: marked, resource: rejected.Resource, key: "-", seq: rejected.Mark.Seq})
	}
	if err != nil {
		return err
	}
	return tell(told(acked)...)
}

func readKey(s store, resource, key string, tell func(...note) error) error {
	text, err := s.get(resource, key)
	if err != nil || text == "" {
		return err
	}
	n, err := readNote(resource, key, text)
	if err != nil {
		return err
	}
	return tell(n)
}
