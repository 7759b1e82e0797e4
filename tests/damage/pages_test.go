package damage_test

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
)

// A page of bbolt: id (8 bytes), flags (2), count (2), overflow (4), then its
// elements of 16 bytes, then keys and values, in the machine's byte order. An
// element of a leaf is flags (4), position of the key counted from the element
// (4), size of key (4) and value (4); of a branch it is position (4), size (4)
// and page (8). A bucket is a value of root page (8) and sequence (8), followed
// by its only page if that is small.
const (
	branchFlag   = 0x01
	leafFlag     = 0x02
	freelistFlag = 0x10
	bucketFlag   = 0x01

	pageHead   = 16
	element    = 16
	metaSize   = 64
	bucketHead = 16
	recordHead = 5 // kind and checksum
)

var (
	native   = binary.NativeEndian
	pageSize = os.Getpagesize()
)

// region is what a byte of a file is for.
type region int

const (
	slack region = iota // behind what a page holds
	freePage
	metaPage
	freeList
	pageHeader
	leafElement
	branchElement
	branchKey
	leafKey
	bucketHeader
	recordHeader
	recordContent
	regions
)

func (r region) String() string {
	return [...]string{"slack", "free page", "meta page", "free list", "page header", "leaf element",
		"branch element", "branch key", "leaf key", "bucket", "record header", "record content"}[r]
}

type metaContent struct{ root, freelist, pages, txid uint64 }

func metaAt(image []byte, page int) metaContent {
	m := image[page*pageSize+pageHead:]
	return metaContent{native.Uint64(m[16:]), native.Uint64(m[32:]), native.Uint64(m[40:]), native.Uint64(m[48:])}
}

func newestMeta(image []byte) metaContent {
	m0, m1 := metaAt(image, 0), metaAt(image, 1)
	if m1.txid > m0.txid {
		return m1
	}
	return m0
}

// anatomy says of each byte of a sound file what it is for.
type anatomy struct {
	image    []byte
	of       []region
	depth    int // of the deepest tree
	branches int // number of branch pages
	free     int
	emptied  int          // leaves below a branch, all of whose records one bit hides
	records  []stored     // in order, those of one bucket together
	overflow map[int]bool // pages that go on with the one before
	children map[int][]child
}

// child is an element of a branch page.
type child struct{ at, key, size, page int }

func dissect(image []byte) (*anatomy, error) {
	a := &anatomy{image: image, of: make([]region, len(image)), overflow: map[int]bool{}, children: map[int][]child{}}
	for page := range 2 {
		a.mark(page*pageSize, pageHead+metaSize, metaPage)
	}
	m := newestMeta(image)
	list := int(m.freelist) * pageSize
	a.free = int(native.Uint16(image[list+10:]))
	if native.Uint16(image[list+8:]) != freelistFlag || a.free == 0xffff {
		return nil, fmt.Errorf("page %d is not a short free list", m.freelist)
	}
	a.mark(list, pageHead+8*a.free, freeList)
	for i := range a.free {
		a.mark(int(native.Uint64(image[list+pageHead+8*i:]))*pageSize, pageSize, freePage)
	}
	return a, a.tree(m.root, 1)
}

func (a *anatomy) mark(at, n int, r region) {
	for i := range n {
		a.of[at+i] = r
	}
}

func (a *anatomy) tree(page uint64, depth int) error {
	a.depth = max(a.depth, depth)
	at := int(page) * pageSize
	switch flags := native.Uint16(a.image[at+8:]); flags {
	case branchFlag:
		a.branches++
		a.mark(at, pageHead, pageHeader)
		for i := range int(native.Uint16(a.image[at+10:])) {
			e := at + pageHead + i*element
			key, size, below := e+int(native.Uint32(a.image[e:])), int(native.Uint32(a.image[e+4:])), native.Uint64(a.image[e+8:])
			a.children[int(page)] = append(a.children[int(page)], child{e, key, size, int(below)})
			a.mark(e, element, branchElement)
			a.mark(key, size, branchKey)
			if err := a.tree(below, depth+1); err != nil {
				return err
			}
		}
		return nil
	case leafFlag:
		for i := range int(native.Uint32(a.image[at+12:])) {
			a.overflow[int(page)+1+i] = true
		}
		return a.leaf(at, depth)
	default:
		return fmt.Errorf("page %d has flags %#x", page, flags)
	}
}

// leaf is also the page within a bucket's value.
func (a *anatomy) leaf(at, depth int) error {
	a.mark(at, pageHead, pageHeader)
	count := native.Uint16(a.image[at+10:])
	if depth > 2 && bits.OnesCount16(count) == 1 {
		a.emptied++
	}
	for i := range int(count) {
		e := at + pageHead + i*element
		a.mark(e, element, leafElement)
		key, ksize := e+int(native.Uint32(a.image[e+4:])), int(native.Uint32(a.image[e+8:]))
		value, vsize := key+ksize, int(native.Uint32(a.image[e+12:]))
		a.mark(key, ksize, leafKey)
		if native.Uint32(a.image[e:]) != bucketFlag {
			a.mark(value, vsize, recordContent)
			a.mark(value, min(recordHead, vsize), recordHeader)
			if at%pageSize == 0 && vsize > 0 {
				a.records = append(a.records, stored{at / pageSize, a.image[value] == 'M', a.image[key : key+ksize]})
			}
			continue
		}
		a.mark(value, bucketHead, bucketHeader)
		err := error(nil)
		if root := native.Uint64(a.image[value:]); root != 0 {
			err = a.tree(root, depth+1)
		} else {
			err = a.leaf(value+bucketHead, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
