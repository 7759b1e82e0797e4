package boltfile

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2
	headerSize  = 16
	metaSize    = 64
	metaTxid    = 48 // where the transaction is in a meta
	noFreelist  = ^uint64(0)

	branchPage   = 0x01
	leafPage     = 0x02
	metaPage     = 0x04
	freelistPage = 0x10

	minPageSize = 1 << 10
	maxPageSize = 1 << 24 // the largest that bbolt looks for
)

type pageHeader struct {
	id       uint64
	flags    uint16
	count    uint16
	overflow uint32
}

type meta struct {
	magic, version, pageSize uint32
	root, freelist, pages    uint64 // pages is the high-water page id
	txid                     uint64
	sound                    bool // the checksum is right
}

// usable is what bbolt calls a valid meta page.
func (m meta) usable() bool { return m.magic == boltMagic && m.version == boltVersion && m.sound }

func parseHeader(b []byte) pageHeader {
	ne := binary.NativeEndian
	return pageHeader{ne.Uint64(b), ne.Uint16(b[8:]), ne.Uint16(b[10:]), ne.Uint32(b[12:])}
}

// parseMeta reads the meta of the page that b begins with; a page that ends too
// early is unusable.
func parseMeta(b []byte) meta {
	if len(b) < headerSize+metaSize {
		return meta{}
	}
	ne, b := binary.NativeEndian, b[headerSize:]
	h := fnv.New64a()
	h.Write(b[:56])
	return meta{
		magic: ne.Uint32(b), version: ne.Uint32(b[4:]), pageSize: ne.Uint32(b[8:]),
		root: ne.Uint64(b[16:]), freelist: ne.Uint64(b[32:]), pages: ne.Uint64(b[40:]),
		txid: ne.Uint64(b[metaTxid:]), sound: ne.Uint64(b[56:]) == h.Sum64(),
	}
}

// current is the meta page that the file stands on.
type current struct {
	meta
	page      int64 // 0 or 1
	otherTxid uint64
	lost      bool // the other meta page is invalid
}

func (c current) offset() int64 { return c.page * int64(c.pageSize) }

// readMetas finds the current meta page of a file of the given size. It judges
// a meta page as bbolt does, but takes one that is invalid for damage instead of
// falling back to the other one in silence.
func readMetas(path string, r io.ReaderAt, size int64) (current, error) {
	if size == 0 {
		return current{}, &FormatError{path, "the file is empty, and a store is made only where no file is; " +
			"if nothing was ever in it, remove it and open again, else restore it from a backup"}
	}
	var c current
	m0, err := metaAt(r, 0)
	if err != nil {
		return c, readError(path, err)
	}
	var m1 meta
	if m0.usable() {
		m1, err = metaAt(r, int64(m0.pageSize))
	} else {
		m1, err = findSecondMeta(r, size)
	}
	if err != nil {
		return c, readError(path, err)
	}
	switch {
	case m0.usable() && m1.usable():
		if m0.pageSize != m1.pageSize {
			return c, &CorruptError{Path: path, Detail: fmt.Sprintf(
				"the meta pages disagree on the page size, %d and %d", m0.pageSize, m1.pageSize)}
		}
		c = current{meta: m0, otherTxid: m1.txid}
		if m1.txid > m0.txid {
			c = current{meta: m1, page: 1, otherTxid: m0.txid}
		}
	case m0.usable():
		c = current{meta: m0, lost: true}
	case m1.usable():
		c = current{meta: m1, page: 1, lost: true}
	default:
		return c, noMeta(path, r, m0, m1)
	}
	if p := c.pageSize; p < minPageSize || p > maxPageSize || p&(p-1) != 0 {
		return c, &CorruptError{Path: path, Detail: fmt.Sprintf("the page size is %d", p)}
	}
	return c, nil
}

func lostCommitError(path string, c current) error {
	return &CorruptError{Path: path, LostCommit: true, Detail: fmt.Sprintf(
		"meta page %d is invalid, meta page %d holds transaction %d; the invalid one may be of transaction %d, "+
			"which was the last and may have been acknowledged; restore a backup, or set Options.AcceptLostCommit "+
			"to go on from transaction %d", 1-c.page, c.page, c.txid, c.txid+1, c.txid)}
}

func metaAt(r io.ReaderAt, off int64) (meta, error) {
	b, err := readUpTo(r, off, headerSize+metaSize)
	return parseMeta(b), err
}

// findSecondMeta looks for meta page 1 when page 0, which would tell the page
// size, is invalid. It returns the best there is: a usable one, or one that has
// at least the magic number.
func findSecondMeta(r io.ReaderAt, size int64) (best meta, err error) {
	for p := int64(minPageSize); p <= maxPageSize && p < size; p *= 2 {
		m, err := metaAt(r, p)
		if err != nil {
			return meta{}, err
		}
		if m.usable() && int64(m.pageSize) == p {
			return m, nil
		}
		if m.magic == boltMagic && !m.usable() {
			best = m
		}
	}
	return best, nil
}

// noMeta tells a damaged bbolt file from one that is none.
func noMeta(path string, r io.ReaderAt, m0, m1 meta) error {
	for _, m := range []meta{m0, m1} {
		if m.magic == boltMagic && m.sound && m.version != boltVersion {
			return &FormatError{path, fmt.Sprintf("a bbolt file of version %d; version %d is read here",
				m.version, boltVersion)}
		}
	}
	if m0.magic == boltMagic || m1.magic == boltMagic || looksLikeBolt(r) {
		return &CorruptError{Path: path, Detail: "both meta pages are invalid; restore the file from a backup"}
	}
	return &FormatError{path, "not a bbolt file; the path is wrong, or the beginning of the file was overwritten"}
}

// looksLikeBolt reports whether one of the first pages says its own number,
// which the pages of a bbolt file do.
func looksLikeBolt(r io.ReaderAt) bool {
	for p := int64(minPageSize); p <= maxPageSize; p *= 2 {
		for id := int64(1); id <= 3; id++ {
			b, err := readUpTo(r, id*p, headerSize)
			if err != nil || len(b) < headerSize {
				continue
			}
			h := parseHeader(b)
			switch h.flags {
			case branchPage, leafPage, metaPage, freelistPage:
				if h.id == uint64(id) {
					return true
				}
			}
		}
	}
	return false
}

// readUpTo reads n bytes at off, fewer if the file ends before.
func readUpTo(r io.ReaderAt, off int64, n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := r.ReadAt(b, off)
	if err == io.EOF {
		err = nil
	}
	return b[:got], err
}

func readError(path string, err error) error {
	return fmt.Errorf("fencedkv: open %s: read the meta pages: %w", path, err)
}
