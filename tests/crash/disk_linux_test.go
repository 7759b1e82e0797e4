package crash_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// inode tells files apart whatever their names are, also a later one with the
// number of an earlier one.
type inode struct{ number, generation uint64 }

// change is something that a process has done to its directory, or told.
type change struct {
	kind   string
	file   inode
	offset int64  // of a write
	size   int64  // of a truncation
	data   []byte // of a write
	name   string // of a link, of what a rename or an unlink takes away
	to     string // of a rename
	note   string
}

const (
	wrote     = "write"
	truncated = "truncate"
	synced    = "sync"
	linked    = "link" // a creation too
	unlinked  = "unlink"
	renamed   = "rename"
	opened    = "open" // changes nothing, but tells which file a name is of
	dirSynced = "sync of the directory"
	told      = "note"

	// A sync that failed: the kernel may take for clean what the device never got.
	syncFailed = "failed sync"
)

// sector is what a device writes as a whole.
const sector = 512

// image is a directory: its files and their names.
type image struct {
	files map[inode][]byte
	names map[string]inode
}

func newImage() image {
	return image{files: map[inode][]byte{}, names: map[string]inode{}}
}

func (i image) clone() image {
	c := image{files: map[inode][]byte{}, names: maps.Clone(i.names)}
	for f, data := range i.files {
		c.files[f] = bytes.Clone(data)
	}
	return c
}

// apply makes a change; of a write only those sectors that keep admits.
func (i image) apply(c change, keep func() bool) {
	switch c.kind {
	case wrote:
		for at := 0; at < len(c.data); {
			offset := c.offset + int64(at)
			n := min(int(sector-offset%sector), len(c.data)-at)
			if keep() {
				i.grow(c.file, offset+int64(n))
				copy(i.files[c.file][offset:], c.data[at:at+n])
			}
			at += n
		}
	case truncated:
		i.grow(c.file, c.size)
		i.files[c.file] = i.files[c.file][:c.size]
	case linked:
		i.names[c.name] = c.file
	case unlinked:
		delete(i.names, c.name)
	case renamed:
		if f, there := i.names[c.name]; there {
			i.names[c.to] = f
			delete(i.names, c.name)
		} else {
			i.names[c.to] = c.file
		}
	}
}

func (i image) grow(f inode, size int64) {
	if have := int64(len(i.files[f])); have < size {
		i.files[f] = append(i.files[f], make([]byte, size-have)...)
	}
}

// save writes the directory.
func (i image) save(dir string) error {
	first := map[inode]string{}
	for name, f := range i.names {
		path := filepath.Join(dir, name)
		if have, again := first[f]; again {
			if err := os.Link(have, path); err != nil {
				return err
			}
			continue
		}
		first[f] = path
		if err := saveFile(path, i.files[f]); err != nil {
			return err
		}
	}
	return nil
}

// saveFile leaves pages of zeros as holes.
func saveFile(path string, data []byte) error {
	const page = 4096
	zero := make([]byte, page)
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Truncate(int64(len(data))); err != nil {
		return err
	}
	for at := 0; at < len(data); at += page {
		part := data[at:min(at+page, len(data))]
		if bytes.Equal(part, zero[:len(part)]) {
			continue
		}
		if _, err := file.WriteAt(part, int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// rebase makes a saved image the start of another record, whose files have
// numbers that are not known before they are opened.
func (i image) rebase() image {
	base, placeholders := newImage(), map[inode]inode{}
	for name, f := range i.names {
		if _, there := placeholders[f]; !there {
			placeholders[f] = inode{generation: uint64(len(placeholders) + 1)}
		}
		base.names[name] = placeholders[f]
		base.files[placeholders[f]] = i.files[f]
	}
	return base
}

// bind gives a file of a rebased image its number.
func (i image) bind(name string, f inode) {
	old, there := i.names[name]
	if !there || old.number != 0 {
		return
	}
	for other, of := range i.names {
		if of == old {
			i.names[other] = f
		}
	}
	i.files[f] = i.files[old]
	delete(i.files, old)
}

// disk is what a device holds: an image that is durable, and the changes since,
// any of which may be.
type disk struct {
	durable image
	pending []change
}

// add takes the next change; a sync makes those of its file durable. A sync that
// failed does so with some of them, and no later sync with the others.
func (d *disk) add(rnd *rand.Rand, c change) {
	keep := func() bool { return true }
	var covers func(change) bool
	switch c.kind {
	case opened:
		d.durable.bind(c.name, c.file)
		return
	case synced, syncFailed:
		if c.kind == syncFailed {
			keep = func() bool { return rnd.IntN(2) == 0 }
		}
		covers = func(p change) bool { return p.file == c.file && (p.kind == wrote || p.kind == truncated) }
	case dirSynced:
		covers = func(p change) bool { return p.kind != wrote && p.kind != truncated }
	default:
		d.pending = append(d.pending, c)
		return
	}
	var left []change
	for _, p := range d.pending {
		if covers(p) {
			if p.kind == wrote || keep() {
				d.durable.apply(p, keep)
			}
		} else {
			left = append(left, p)
		}
	}
	d.pending = left
}

// crash is what may be there after a power failure. Of the changes that are not
// durable it takes, by a choice at random, none, all, each with even odds, one
// alone, all but one, or each sector with even odds.
func (d *disk) crash(rnd *rand.Rand) image {
	i := d.durable.clone()
	way, one := rnd.IntN(6), rnd.IntN(max(1, len(d.pending)))
	for n, c := range d.pending {
		whole := rnd.IntN(2) == 0
		keep := func() bool { return whole }
		switch way {
		case 0:
			whole = false
		case 1:
			whole = true
		case 2:
			whole = n == one
		case 3:
			whole = n != one
		case 4:
			keep = func() bool { return rnd.IntN(2) == 0 }
		}
		if c.kind == wrote || whole {
			i.apply(c, keep)
		}
	}
	return i
}
