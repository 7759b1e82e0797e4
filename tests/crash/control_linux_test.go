package crash_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var toys = map[string]flaw{
	"sound":                       {},
	"no sync":                     {noSync: true},
	"mark in a later transaction": {lateMark: true},
	"meta page not written again": {noSettle: true},
	"name not synced":             {unsyncedName: true},
	"sound creation":              {},
	"creation by rename":          {rename: true},
}

// ofTwoOpeners are the kinds whose child opens the file twice while it is missing.
var ofTwoOpeners = map[string]bool{"sound creation": true, "creation by rename": true}

func init() {
	for name, f := range toys {
		k := kind{child: load.writeMany, open: func(path string) (store, error) {
			s, err := openToy(path, f, nil)
			if err != nil {
				return nil, err
			}
			return s, nil
		}}
		if ofTwoOpeners[name] {
			k.child = load.openTwice
		}
		kinds[name] = k
	}
}

// openTwice opens a store, and while it has seen that there is none another opener
// makes one, has a write acknowledged and closes it.
func (l load) openTwice(tell func(...note) error) error {
	f := toys[l.Kind]
	write := func(s *toy, seq uint64) error {
		n := note{resource: resourceName(0), key: l.ownKey(l.Generation, int(seq)), n: seq, seq: seq, size: 10}
		return errors.Join(writeTold(s, tell, n), s.close())
	}
	base := uint64(10*l.Generation + 1)
	second, err := openToy(l.Path, f, func() error {
		first, err := openToy(l.Path, f, nil)
		if err != nil {
			return err
		}
		return write(first, base)
	})
	if err != nil {
		return err
	}
	return write(second, base+1)
}

// TestEnumerationFindsDamage shows that each flaw is found, and in the sound toy
// nothing.
func TestEnumerationFindsDamage(t *testing.T) {
	requireFUSE(t)
	seed := newSeed(t)
	for _, name := range slices.Sorted(maps.Keys(toys)) {
		t.Run(name, func(t *testing.T) {
			f := toys[name]
			e := explorer{kind: name, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 0)), end: time.Now().Add(time.Hour), limit: 10_000}
			if f == (flaw{}) {
				e.limit = 60
			}
			if f.noSettle || name == "sound" {
				e.unsyncedMeta = true
				e.limit *= 10
			}
			err := e.explore(t)
			if found, want := err != nil, f != (flaw{}); found != want {
				t.Fatalf("%d states, found: %v; want damage: %v", e.states, err, want)
			}
			t.Logf("%d states, found: %v", e.states, err)
		})
	}
}
