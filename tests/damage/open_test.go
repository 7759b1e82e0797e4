package damage_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// What happens to a file while it is open.
const (
	cut   kind = "cut"   // it is made shorter
	zeros kind = "zeros" // and as long as before again
	moved kind = "moved" // see ways
	aged  kind = "aged"  // an older copy is written over it
)

// sizes are those that a file is cut to: the ends of pages, of a large store not of
// each, and in the last pages each end of a sector and a byte beside it.
func (c *corpus) sizes() (all []int) {
	for size := 0; size < len(c.sound); size += pageSize * (1 + len(c.model)/200) {
		all = append(all, size)
	}
	for size := len(c.sound) - 3*pageSize; size < len(c.sound); size += 512 {
		all = append(all, size+1, size+511)
		if size%pageSize != 0 {
			all = append(all, size)
		}
	}
	return all
}

// way is a way to take a file from under an open store.
type way struct {
	name  string
	stays bool // the store's own file is as it was
	do    func(c *corpus, path string) error
}

var ways = []way{
	{"removed", true, func(_ *corpus, path string) error { return os.Remove(path) }},
	{"renamed", true, func(_ *corpus, path string) error { return os.Rename(path, path+".away") }},
	{"replaced by another store", true, func(c *corpus, path string) error { return replace(path, c.other()) }},
	{"replaced by an older copy", true, func(c *corpus, path string) error { return replace(path, c.previous()) }},
	{"another store written into it", false, func(c *corpus, path string) error { return os.WriteFile(path, c.other(), 0o600) }},
	{"an older copy written into it", false, func(c *corpus, path string) error { return os.WriteFile(path, c.previous(), 0o600) }},
	{"an older copy written over it", false, func(c *corpus, path string) error { return patchFile(path, c.previous()) }},
	{"zeros written over it", false, func(c *corpus, path string) error { return patchFile(path, make([]byte, len(c.sound))) }},
}

func replace(path string, by []byte) error {
	if err := os.WriteFile(path+".new", by, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// patchFile writes into a file without making it shorter before.
func patchFile(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(content, 0)
	return err
}

// previous is the store before its last commit.
func (c *corpus) previous() []byte { return c.older[len(c.older)-1] }

// other is another store, longer than this one.
func (c *corpus) other() []byte { return append(c.foreign, make([]byte, len(c.sound))...) }

// whileOpen damages the file of an open store and goes on to use it.
func (b *bench) whileOpen(k kind, n int) (verdict, error) {
	b.now = nil
	if err := b.write(b.corpus.sound); err != nil {
		return verdict{}, err
	}
	s, err := fencedkv.Open(b.path, nil)
	if err != nil {
		return verdict{}, err
	}
	x := newExam(b.path, b.corpus.model)
	if len(x.model) > 200 { // a read that faults takes its time
		x.focus = newFocus()
		x.focus.spread(b.anatomy)
	}
	stays := false
	switch k {
	case moved:
		stays = ways[n].stays
		err = ways[n].do(b.corpus, b.path)
	case aged:
		err = patchFile(b.path, b.corpus.older[n])
	default:
		if err = os.Truncate(b.path, int64(b.corpus.sizes()[n])); err == nil && k == zeros {
			err = os.Truncate(b.path, int64(len(b.corpus.sound)))
		}
	}
	if err != nil {
		return verdict{}, errors.Join(err, s.Close())
	}
	ctx := context.Background()
	x.read(ctx, s)
	if k == aged && !x.saw(found) {
		x.note(wrong, "no read is ErrCorrupt")
	}
	if stays && x.saw(found) {
		x.note(otherError, "its own file is as it was: %s", x.seen[found])
	}
	x.stale(ctx, s)
	e := b.corpus.model[0]
	err = s.Resource(e.name).Put(ctx, token(e.seq+1), []byte("k1"), []byte("new"))
	switch {
	case stays && !errors.Is(err, fencedkv.ErrMoved):
		x.note(otherError, "Put: %v, want ErrMoved", err)
	case (k == aged || k == moved && !stays) && (!errors.Is(err, fencedkv.ErrCorrupt) || errors.Is(err, fencedkv.ErrUnknownOutcome)):
		x.note(otherError, "Put: %v, want ErrCorrupt before anything is written", err)
	case k == cut && !errors.Is(err, fencedkv.ErrCorrupt):
		x.note(otherError, "Put: %v, want ErrCorrupt", err)
	case stays || errors.Is(err, fencedkv.ErrUnknownOutcome): // bbolt has met it in its commit
	case err != nil:
		x.failed(err, "Put")
	}
	if err := s.Close(); err != nil {
		x.failed(err, "Close")
	}
	os.Remove(b.path)
	os.Remove(b.path + ".away")
	return x.verdict(), nil
}

// refused is whether an error is one that a stale write may meet.
func refused(err error) bool {
	return errors.Is(err, fence.ErrStale) || errors.Is(err, fencedkv.ErrMoved)
}

func (c *corpus) describeOpen(k kind, n int) string {
	switch k {
	case moved:
		return fmt.Sprintf("%s: %s while open", c.Name, ways[n].name)
	case aged:
		return fmt.Sprintf("%s: state %d of %d written over it while open", c.Name, n, len(c.older))
	case zeros:
		return fmt.Sprintf("%s: cut to %d bytes while open, and grown again", c.Name, c.sizes()[n])
	}
	return fmt.Sprintf("%s: cut to %d bytes of %d while open", c.Name, c.sizes()[n], len(c.sound))
}
