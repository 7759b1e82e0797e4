package faultfs

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
)

// Inode tells files apart whatever their names are, also a later one with the
// number of an earlier one.
type Inode struct{ Number, Generation uint64 }

// Kind is what a Change does.
type Kind string

// The kinds of changes.
const (
	Wrote     Kind = "write"
	Truncated Kind = "truncate"
	Synced    Kind = "sync"
	Linked    Kind = "link" // a creation too
	Unlinked  Kind = "unlink"
	Renamed   Kind = "rename"
	Opened    Kind = "open" // changes nothing, but tells which file a name is of
	DirSynced Kind = "sync of the directory"
	Told      Kind = "note"

	// SyncFailed: the kernel may take for clean what the device never got.
	SyncFailed Kind = "failed sync"
)

// Change is something that a process has done to its directory, or told.
type Change struct {
	Kind     Kind
	File     Inode
	Offset   int64  // of a write
	Size     int64  // of a truncation
	Data     []byte // of a write
	DataOnly bool   // of a sync: fdatasync
	Name     string // of a link, of what a rename or an unlink takes away
	To       string // of a rename
	Note     string
}

// Sector is what a device writes as a whole, in bytes.
const Sector = 512

// Image is a directory: its files and their names.
type Image struct {
	Files map[Inode][]byte
	Names map[string]Inode
}

// NewImage returns an empty directory.
func NewImage() Image {
	return Image{Files: map[Inode][]byte{}, Names: map[string]Inode{}}
}

// Clone returns a copy.
func (i Image) Clone() Image {
	c := Image{Files: map[Inode][]byte{}, Names: maps.Clone(i.Names)}
	for f, data := range i.Files {
		c.Files[f] = bytes.Clone(data)
	}
	return c
}

// Apply makes a change; of a write only those sectors that keep admits.
func (i Image) Apply(c Change, keep func() bool) {
	switch c.Kind {
	case Wrote:
		for at := 0; at < len(c.Data); {
			offset := c.Offset + int64(at)
			n := min(int(Sector-offset%Sector), len(c.Data)-at)
			if keep() {
				i.grow(c.File, offset+int64(n))
				copy(i.Files[c.File][offset:], c.Data[at:at+n])
			}
			at += n
		}
	case Truncated:
		i.grow(c.File, c.Size)
		i.Files[c.File] = i.Files[c.File][:c.Size]
	case Linked:
		i.Names[c.Name] = c.File
	case Unlinked:
		delete(i.Names, c.Name)
	case Renamed:
		if f, there := i.Names[c.Name]; there {
			i.Names[c.To] = f
			delete(i.Names, c.Name)
		} else {
			i.Names[c.To] = c.File
		}
	}
}

func (i Image) grow(f Inode, size int64) {
	if have := int64(len(i.Files[f])); have < size {
		i.Files[f] = append(i.Files[f], make([]byte, size-have)...)
	}
}

// Save writes the directory.
func (i Image) Save(dir string) error {
	first := map[Inode]string{}
	for name, f := range i.Names {
		path := filepath.Join(dir, name)
		if have, again := first[f]; again {
			if err := os.Link(have, path); err != nil {
				return err
			}
			continue
		}
		first[f] = path
		if err := saveFile(path, i.Files[f]); err != nil {
			return err
		}
	}
	return nil
}

// saveFile leaves pages of zeros as holes.
func saveFile(path string, data []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Truncate(int64(len(data))); err != nil {
		return err
	}
	for at := 0; at < len(data); {
		end := at
		for end < len(data) && !bytes.Equal(pageAt(data, end), zeros[:len(pageAt(data, end))]) {
			end += len(pageAt(data, end))
		}
		if _, err := file.WriteAt(data[at:end], int64(at)); err != nil {
			return err
		}
		at = end + len(zeros)
	}
	return nil
}

var zeros [4096]byte

func pageAt(data []byte, at int) []byte { return data[at:min(at+len(zeros), len(data))] }

// Rebase makes a saved image the start of another record, whose files have
// numbers that are not known before they are opened.
func (i Image) Rebase() Image {
	base, placeholders := NewImage(), map[Inode]Inode{}
	for name, f := range i.Names {
		if _, there := placeholders[f]; !there {
			placeholders[f] = Inode{Generation: uint64(len(placeholders) + 1)}
		}
		base.Names[name] = placeholders[f]
		base.Files[placeholders[f]] = i.Files[f]
	}
	return base
}

// bind gives a file of a rebased image its number.
func (i Image) bind(name string, f Inode) {
	old, there := i.Names[name]
	if !there || old.Number != 0 {
		return
	}
	for other, of := range i.Names {
		if of == old {
			i.Names[other] = f
		}
	}
	i.Files[f] = i.Files[old]
	delete(i.Files, old)
}
