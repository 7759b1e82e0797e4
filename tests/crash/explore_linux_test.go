package crash_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/tests/internal/faultfs"
)

// explorer looks for a crash that breaks a promise.
type explorer struct {
	kind   string
	dir    string // for the states
	rnd    *rand.Rand
	end    time.Time
	states int // looked at
	met    [dies + 1]int
	limit  int // of states; 0 is none

	unsyncedMeta bool // each child dies with a meta page that it has not synced
	errors       bool // the device may fail
}

// point is a moment at which the power may fail.
type point struct {
	disk  faultfs.Image
	notes []note
}

const (
	childrenPerRecord = 3
	lookEvery         = 4 // changes and notes, on average
)

func (e *explorer) over() bool {
	return e.states > 0 && (time.Now().After(e.end) || e.limit > 0 && e.states >= e.limit)
}

// explore returns the first damage. Each record begins with nothing or with what
// a crash of the one before has left.
func (e *explorer) explore(t *testing.T) error {
	from := point{disk: faultfs.NewImage()}
	generation := 0
	for !e.over() {
		next, err := e.record(t, from, generation)
		if err != nil {
			return err
		}
		from, generation = next, generation+childrenPerRecord
		if e.rnd.IntN(3) == 0 {
			from, generation = point{disk: faultfs.NewImage()}, 0
		}
	}
	return nil
}

// record lets children follow each other on one file, and die, and looks at what
// a power failure would leave at any moment.
func (e *explorer) record(t *testing.T, from point, generation int) (point, error) {
	t.Helper()
	s := newSession(t, from.disk)
	defer s.end(t)
	d := faultfs.Disk{Durable: from.disk.Rebase()}
	p := newPromises()
	notes := from.notes
	for _, n := range notes {
		if err := p.learn(n); err != nil {
			return point{}, err
		}
	}
	next, seen := from, 0
	for g := range childrenPerRecord {
		l := load{Kind: e.kind, Seed: e.rnd.Uint64(), Generation: generation + g, Writers: 6, Each: 8, MaxValue: 2500}
		changes, met := s.run(t, l, e.fate())
		e.met[met]++
		for _, c := range changes {
			if c.Kind == faultfs.Told {
				for line := range strings.Lines(c.Note) {
					n, err := parseNote(line)
					if err != nil {
						t.Fatalf("the child told %q: %v", c.Note, err)
					}
					if err := p.learn(n); err != nil {
						return point{}, err
					}
					notes = append(notes, n)
				}
			} else {
				d.Add(c, func() bool { return e.rnd.IntN(2) == 0 })
			}
			if e.rnd.IntN(lookEvery) > 0 {
				continue
			}
			if e.over() {
				return next, nil
			}
			left := crash(&d, e.rnd)
			if err := e.look(t, left, p); err != nil {
				return point{}, fmt.Errorf("%w (state %d, %d changes not synced)", err, e.states, len(d.Pending))
			}
			if seen++; e.rnd.IntN(seen) == 0 {
				next = point{left, notes[:len(notes):len(notes)]}
			}
		}
	}
	return next, nil
}

// fate kills no child, or one at any change, or one that has written a meta page
// and has not synced it yet: it is visible then and need not be durable. Or the
// device fails a write or a sync there, once.
func (e *explorer) fate() func(faultfs.Change) fate {
	way, end := e.rnd.IntN(3), dies
	if e.unsyncedMeta {
		way = 1
	} else if e.errors && e.rnd.IntN(2) == 0 {
		end = fails
	}
	left, meta := e.rnd.IntN(200), false
	if way == 1 {
		left /= 10
	}
	return func(c faultfs.Change) fate {
		counts := false
		switch way {
		case 0:
			counts = end == dies || c.Kind == faultfs.Wrote || c.Kind == faultfs.Synced
		case 1:
			counts = meta && c.Kind == faultfs.Synced
		}
		if c.Kind != faultfs.Told {
			meta = c.Kind == faultfs.Wrote && c.Offset < int64(2*metaPage) && len(c.Data) == metaPage
		}
		if !counts {
			return happens
		}
		if left--; left == -1 {
			return end
		}
		return happens
	}
}

// metaPage is the size of the pages, the first two of which are meta pages.
var metaPage = os.Getpagesize()

// look opens the store that the crash has left, in a directory of its own.
func (e *explorer) look(t *testing.T, left faultfs.Image, p *promises) (err error) {
	e.states++
	dir := filepath.Join(e.dir, fmt.Sprint("state-", e.states))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := left.Save(dir); err != nil {
		t.Fatal(err)
	}
	s, err := kinds[e.kind].open(filepath.Join(dir, "store.db"))
	if err != nil {
		return fmt.Errorf("open after a power failure: %w", err)
	}
	err = p.check(s)
	if e := s.close(); err == nil {
		err = e
	}
	return err
}
