package boltfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unsafe"

	bolt "go.etcd.io/bbolt"
)

const (
	elementSize   = 16
	bucketElement = 0x01 // the flag of a leaf's element that is a bucket
	bucketHead    = 16   // root page and sequence, before the page of an inline bucket

	// maxDepth bounds a path from the root of a tree to a leaf. bbolt's branch
	// pages have two children at least, so that 32 levels are more than 2^32
	// pages: a path that is longer runs in a circle.
	maxDepth = 32
)

// pages is the memory of one committed state: all pages below its high-water
// mark. It may be read while the transaction that it was taken from is open.
type pages struct {
	path  string
	mem   []byte
	size  uint64 // of a page
	count uint64
}

// pagesOf returns the pages of the state that tx stands on, and the root page of
// its root bucket. A write transaction does not change them before it commits.
func pagesOf(path string, tx *bolt.Tx) (*pages, uint64) {
	info := tx.DB().Info()
	size := tx.Size()
	// Data is the address of bbolt's mapping, which is not of Go's heap. Read in
	// this way it is not taken for a number that was once a pointer.
	base := *(*unsafe.Pointer)(unsafe.Pointer(&info.Data))
	p := &pages{path: path, mem: unsafe.Slice((*byte)(base), size), size: uint64(info.PageSize)}
	p.count = uint64(size) / p.size
	return p, uint64(tx.Cursor().Bucket().Root())
}

func (p *pages) corrupt(id uint64, format string, args ...any) error {
	return &CorruptError{Path: p.path, Detail: fmt.Sprintf("page %d: ", id) + fmt.Sprintf(format, args...)}
}

// page is a branch or a leaf whose header and elements lie within it.
type page struct {
	id    uint64 // 0 is the page of an inline bucket
	leaf  bool
	count int
	b     []byte // with the pages that it runs over
}

func (p *pages) page(id uint64) (page, error) {
	if id < 2 || id >= p.count {
		return page{}, p.corrupt(id, "it is named as part of a tree, and the file has pages 2 to %d", p.count-1)
	}
	b := p.mem[id*p.size:]
	h := parseHeader(b)
	if h.id != id {
		return page{}, p.corrupt(id, "it says that it is page %d", h.id)
	}
	if uint64(h.overflow) >= p.count-id {
		return page{}, p.corrupt(id, "it runs over %d more pages, past the last one", h.overflow)
	}
	return p.parse(h, b[:(uint64(h.overflow)+1)*p.size])
}

func (p *pages) parse(h pageHeader, b []byte) (page, error) {
	pg := page{id: h.id, leaf: h.flags == leafPage, count: int(h.count), b: b}
	switch {
	case !pg.leaf && h.flags != branchPage:
		return page{}, p.corrupt(h.id, "it should be a branch or a leaf and is of type %#x", h.flags)
	case !pg.leaf && h.count == 0:
		return page{}, p.corrupt(h.id, "it is a branch without an element")
	case headerSize+elementSize*pg.count > len(b):
		return page{}, p.corrupt(h.id, "it has no room for %d elements", h.count)
	}
	// The keys begin right behind the elements. A count that is wrong would hide
	// records without a trace.
	first := headerSize
	if pg.leaf {
		first += 4 // the flags
	}
	if pg.count > 0 && uint64(binary.NativeEndian.Uint32(b[first:])) != elementSize*uint64(pg.count) {
		return page{}, p.corrupt(h.id, "it does not have the %d elements that it counts", h.count)
	}
	return pg, nil
}

// key returns the key of an element, nil if it does not lie within the page.
func (p *page) key(i int) []byte {
	at := headerSize + elementSize*i
	e := p.b[at : at+elementSize]
	if p.leaf {
		e = e[4:] // the flags
	}
	from := uint64(at) + uint64(binary.NativeEndian.Uint32(e))
	to := from + uint64(binary.NativeEndian.Uint32(e[4:]))
	if from < uint64(headerSize+elementSize*p.count) || from == to || to > uint64(len(p.b)) {
		return nil
	}
	return p.b[from:to:to]
}

// child returns the page that an element of a branch leads to.
func (p *page) child(i int) uint64 {
	return binary.NativeEndian.Uint64(p.b[headerSize+elementSize*i+8:])
}

// leafElement returns an element of a leaf. The value of a bucket is its header
// and its page, if that is inline.
func (p *pages) leafElement(pg *page, i int) (key, value []byte, bucket bool, err error) {
	key = pg.key(i)
	if key == nil {
		return nil, nil, false, p.badElement(pg, i)
	}
	e := pg.b[headerSize+elementSize*i:]
	flags := binary.NativeEndian.Uint32(e)
	from := headerSize + elementSize*uint64(i) + uint64(binary.NativeEndian.Uint32(e[4:])) + uint64(len(key))
	to := from + uint64(binary.NativeEndian.Uint32(e[12:]))
	if flags&^bucketElement != 0 || to > uint64(len(pg.b)) {
		return nil, nil, false, p.badElement(pg, i)
	}
	return key, pg.b[from:to:to], flags == bucketElement, nil
}

func (p *pages) badElement(pg *page, i int) error {
	return p.corrupt(pg.id, "its element %d cannot be right", i)
}

// search returns the first element whose key is not below key, and whether it
// is key. ok is false if an element cannot be right.
func (p *page) search(key []byte) (i int, exact, ok bool) {
	lo, hi := 0, p.count
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		k := p.key(mid)
		if k == nil {
			return mid, false, false
		}
		switch c := bytes.Compare(k, key); {
		case c == 0:
			return mid, true, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false, true
}

// descent returns the element of a branch under which key is, if it is there.
func (p *page) descent(key []byte) (i int, ok bool) {
	i, exact, ok := p.search(key)
	if !exact && i > 0 {
		i--
	}
	return i, ok
}

// Tree reads one bucket of a committed state. It looks at every page number, size
// and type before it follows it, so that damage is a *CorruptError, and never
// reads on for ever. It may be used by several goroutines while the transaction
// is open, within Guard: a page that cannot be read is a memory fault.
//
// Keys and values are memory of the file.
type Tree struct {
	in     *pages
	root   uint64
	inline []byte // the page of an inline bucket, whose root is 0
}

func (t *Tree) top() (page, error) {
	if t.root != 0 {
		return t.in.page(t.root)
	}
	if len(t.inline) < headerSize {
		return page{}, t.in.corrupt(0, "an inline bucket of %d bytes has no page", len(t.inline))
	}
	p, err := t.in.parse(parseHeader(t.inline), t.inline)
	if err == nil && !p.leaf {
		err = t.in.corrupt(0, "an inline bucket has a branch")
	}
	return p, err
}

// Get returns the value under key. The value of a bucket is nil. It allocates
// nothing.
func (t *Tree) Get(key []byte) (value []byte, found bool, err error) {
	value, bucket, found, err := t.get(key)
	if bucket {
		value = nil
	}
	return value, found, err
}

func (t *Tree) get(key []byte) (value []byte, bucket, found bool, err error) {
	p, err := t.top()
	for range maxDepth {
		if err != nil {
			return nil, false, false, err
		}
		if p.leaf {
			return t.in.leafValue(&p, key)
		}
		i, ok := p.descent(key)
		if !ok {
			return nil, false, false, t.in.badElement(&p, i)
		}
		p, err = t.in.page(p.child(i))
	}
	return nil, false, false, t.in.circle(p.id)
}

// leafValue returns the value under key in a leaf.
func (p *pages) leafValue(pg *page, key []byte) (value []byte, bucket, found bool, err error) {
	i, exact, ok := pg.search(key)
	switch {
	case !ok:
		return nil, false, false, p.badElement(pg, i)
	case !exact:
		return nil, false, false, nil
	}
	_, value, bucket, err = p.leafElement(pg, i)
	return value, bucket, err == nil, err
}

func (p *pages) circle(id uint64) error {
	return p.corrupt(id, "the path to it runs in a circle")
}

// Bucket returns the tree of a bucket in t.
func (t *Tree) Bucket(name []byte) (b Tree, found bool, err error) {
	v, bucket, found, err := t.get(name)
	if err != nil || !found || !bucket {
		return Tree{}, false, err
	}
	if len(v) < bucketHead {
		return Tree{}, false, t.in.corrupt(t.root, "the bucket %q has a header of %d bytes", name, len(v))
	}
	b = Tree{in: t.in, root: binary.NativeEndian.Uint64(v)}
	if b.root == 0 {
		b.inline = v[bucketHead:]
	}
	return b, true, nil
}
