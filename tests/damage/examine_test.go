package damage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// class is what became of a damaged store, the worst last.
type class int

const (
	harmless   class = iota // everything reads as it was written, and Check agrees
	openDamage              // Open is ErrCorrupt
	openFormat              // Open is ErrFormat
	found                   // a read is ErrCorrupt
	checkOnly               // everything reads as it was written, Check is ErrCorrupt
	missing                 // something reads as not there, and Check is ErrCorrupt
	old                     // what stood there before is read, and Check is ErrCorrupt
	// What follows must never be.
	wrote      // reading has changed the file
	otherError // an error of another kind
	late       // harmless, and wrong or ErrCorrupt after further writes
	lost       // something reads as not there, and Check finds nothing
	wrong      // a mark or a value that was not written
	admitted   // a stale token was admitted
	hang
	crash
	classes
)

func (c class) String() string {
	return [...]string{"harmless", "Open: corrupt", "Open: format", "read: corrupt", "Check only", "missing", "old",
		"wrote", "other error", "late", "lost", "wrong", "admitted", "hang", "crash"}[c]
}

// verdict is a class and the first thing that made it so.
type verdict struct {
	class  class
	detail string
}

// exam reads a damaged store and gathers what it sees.
type exam struct {
	model model
	focus *focus
	older []model // what an old record may say
	path  string
	seen  [classes]string
	names map[string]int // index in model
}

func newExam(path string, m model, older ...model) *exam {
	x := &exam{model: m, older: older, path: path, names: map[string]int{}}
	for i, e := range m {
		x.names[e.name] = i
	}
	return x
}

func (x *exam) note(c class, format string, args ...any) {
	if x.seen[c] == "" {
		x.seen[c] = fmt.Sprintf(format, args...)
	}
}

func (x *exam) saw(c class) bool { return x.seen[c] != "" }

// failed notes an error of a read.
func (x *exam) failed(err error, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	var c *fencedkv.CorruptError
	if errors.Is(err, fencedkv.ErrCorrupt) && errors.As(err, &c) && c.Kind != "" && strings.Contains(err.Error(), x.path) {
		x.note(found, "%s: %v", what, err)
		return
	}
	x.note(otherError, "%s: %v", what, err)
}

// run opens the store and reads everything in it.
func (x *exam) run() verdict {
	ctx := context.Background()
	s, err := fencedkv.Open(x.path, nil)
	switch {
	case err == nil:
	case !strings.Contains(err.Error(), x.path):
		return verdict{otherError, "Open: " + err.Error()}
	case errors.Is(err, fencedkv.ErrCorrupt):
		return verdict{openDamage, err.Error()}
	case errors.Is(err, fencedkv.ErrFormat):
		return verdict{openFormat, err.Error()}
	default:
		return verdict{otherError, "Open: " + err.Error()}
	}
	x.read(ctx, s)
	x.stale(ctx, s)
	x.check(ctx, s)
	if err := s.Close(); err != nil {
		x.failed(err, "Close")
	}
	return x.verdict()
}

// read reads everything.
func (x *exam) read(ctx context.Context, s *fencedkv.Store) {
	for i, e := range x.model {
		r := s.Resource(e.name)
		if x.focus.mark(e.name) {
			m, err := r.Highest(ctx)
			x.markIs(i, m, err)
		}
		if !x.focus.resource(e.name) {
			continue
		}
		err := r.View(ctx, func(_ context.Context, tx *fencedkv.ReadTx) error {
			for k, p := range e.keys {
				if !x.focus.key(e.name, p.key) {
					continue
				}
				x.get(tx, i, p.key, k)
				x.get(tx, i, p.key+"~", -1)
			}
			if len(e.keys) == 0 {
				x.get(tx, i, "k1", -1)
			}
			x.scan(tx, i, false)
			x.scan(tx, i, true)
			return nil
		})
		if err != nil {
			x.failed(err, "View of %s", short(e.name))
		}
	}
	for _, name := range []string{"a", "r1", "r05~", "r0555~", "z"} {
		m, err := s.Resource(name).Highest(ctx)
		switch {
		case err != nil:
			x.failed(err, "Highest(%s)", name)
		case !m.IsZero():
			x.note(wrong, "Highest(%s) = %v, it has none", name, m)
		}
	}
	if x.focus == nil || len(x.focus.marks) > 0 {
		x.list(s.Resources(ctx))
	}
}

// markIs judges a mark of the i-th resource.
func (x *exam) markIs(i int, m fence.Mark, err error) {
	e := x.model[i]
	switch {
	case err != nil:
		x.failed(err, "Highest(%s)", short(e.name))
	case m.Token == token(e.seq):
	case m.IsZero():
		x.note(lost, "Highest(%s) = none", short(e.name))
	case slices.ContainsFunc(x.older, func(o model) bool { return i < len(o) && m.Token == token(o[i].seq) }):
		x.note(old, "Highest(%s) = %v", short(e.name), m)
	default:
		x.note(wrong, "Highest(%s) = %v", short(e.name), m)
	}
}

// get reads a key, the k-th of the i-th resource, or one that is not there.
func (x *exam) get(tx *fencedkv.ReadTx, i int, key string, k int) {
	v, err := tx.Get([]byte(key))
	switch {
	case errors.Is(err, fencedkv.ErrNotFound):
		if k >= 0 {
			x.note(lost, "Get(%s, %s) = not found", short(x.model[i].name), key)
		}
	case err != nil:
		x.failed(err, "Get(%s, %s)", short(x.model[i].name), key)
	default:
		x.valueIs(i, key, v)
	}
}

// valueIs judges a value that was read.
func (x *exam) valueIs(i int, key string, v []byte) {
	is := func(m model) bool {
		return i < len(m) && slices.ContainsFunc(m[i].keys, func(p pair) bool { return p.key == key && bytes.Equal(p.value, v) })
	}
	switch {
	case is(x.model):
	case slices.ContainsFunc(x.older, is):
		x.note(old, "value of %s in %s", key, short(x.model[i].name))
	default:
		x.note(wrong, "value of %s in %s, %d bytes", key, short(x.model[i].name), len(v))
	}
}

func (x *exam) scan(tx *fencedkv.ReadTx, i int, reverse bool) {
	n := 0
	want := x.model[i].keys
	for kv, err := range tx.Scan(fencedkv.Range{Reverse: reverse}) {
		if err != nil {
			x.failed(err, "Scan(%s)", short(x.model[i].name))
			return
		}
		at := n
		if reverse {
			at = len(want) - 1 - n
		}
		n++
		if at >= 0 && at < len(want) && want[at].key == string(kv.Key) && bytes.Equal(want[at].value, kv.Value) {
			continue
		}
		x.valueIs(i, string(kv.Key), kv.Value)
	}
	if n < len(want) {
		x.note(lost, "Scan(%s) has %d keys of %d", short(x.model[i].name), n, len(want))
	}
}

func (x *exam) list(seq iter.Seq2[fencedkv.ResourceInfo, error]) {
	n := 0
	for info, err := range seq {
		if err != nil {
			x.failed(err, "Resources")
			return
		}
		n++
		i, found := x.names[info.Name]
		if !found {
			x.note(wrong, "Resources has %q", info.Name)
			continue
		}
		x.markIs(i, info.Highest, nil)
	}
	if n < len(x.model) {
		x.note(lost, "Resources has %d of %d", n, len(x.model))
	}
}

// stale offers every resource a token that was superseded.
func (x *exam) stale(ctx context.Context, s *fencedkv.Store) {
	for i, e := range x.model {
		if i > 0 && !x.focus.mark(e.name) {
			continue
		}
		r, t := s.Resource(e.name), token(e.seq-1)
		var err error
		if i%2 == 0 {
			err = r.Raise(ctx, t)
		} else {
			err = r.Put(ctx, t, []byte("k1"), []byte("stale"))
		}
		switch {
		case err == nil:
			x.note(admitted, "%v to %s", t, short(e.name))
		case !refused(err):
			x.failed(err, "stale %v to %s", t, short(e.name))
		}
	}
}

// check asks Check, if nothing was found yet, or it must find something.
func (x *exam) check(ctx context.Context, s *fencedkv.Store) {
	if x.saw(found) && !x.saw(lost) && !x.saw(old) && !x.saw(admitted) {
		return
	}
	err := s.Check(ctx)
	if err == nil {
		return
	}
	if !errors.Is(err, fencedkv.ErrCorrupt) {
		x.note(otherError, "Check: %v", err)
		return
	}
	x.note(checkOnly, "%v", err)
}

func (x *exam) verdict() verdict {
	at := func(c class) verdict { return verdict{c, x.seen[c]} }
	switch {
	case x.saw(admitted) && (!x.saw(old) || !x.saw(checkOnly)):
		return at(admitted)
	case x.saw(wrong):
		return at(wrong)
	case x.saw(otherError):
		return at(otherError)
	case x.saw(old) && !x.saw(checkOnly):
		return verdict{wrong, x.seen[old]}
	case x.saw(old):
		return at(old)
	case x.saw(lost) && !x.saw(checkOnly):
		return at(lost)
	case x.saw(lost):
		return verdict{missing, x.seen[lost]}
	case x.saw(found):
		return at(found)
	case x.saw(checkOnly):
		return at(checkOnly)
	}
	return verdict{harmless, ""}
}

// short is a name as people can read it.
func short(name string) string {
	if len(name) > 12 {
		return name[:9] + "..."
	}
	return name
}
