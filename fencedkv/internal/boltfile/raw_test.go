package boltfile_test

import (
	"encoding/binary"
	"hash/fnv"
	"testing"
)

// The tests read the raw file themselves, by the table of the package comment.

type rawMeta struct {
	page     int // 0 or 1
	offset   int // of the page
	pageSize int
	root     int
	freelist int
	pages    int
	txid     uint64
}

const headerSize = 16

func metaAt(t *testing.T, file []byte, page, pageSize int) rawMeta {
	t.Helper()
	b, ne := file[page*pageSize+headerSize:], binary.NativeEndian
	if got := ne.Uint32(b); got != 0xED0CDAED {
		t.Fatalf("meta page %d: magic %#x", page, got)
	}
	return rawMeta{
		page: page, offset: page * pageSize, pageSize: int(ne.Uint32(b[8:])), root: int(ne.Uint64(b[16:])),
		freelist: int(ne.Uint64(b[32:])), pages: int(ne.Uint64(b[40:])), txid: ne.Uint64(b[48:]),
	}
}

// metas returns the current meta page of a sound file and the other one.
func metas(t *testing.T, file []byte) (cur, other rawMeta) {
	t.Helper()
	cur = metaAt(t, file, 0, 0)
	other = metaAt(t, file, 1, cur.pageSize)
	if other.txid > cur.txid {
		cur, other = other, cur
	}
	return cur, other
}

// setMeta changes 8 bytes of a meta page at the given offset of its table and
// makes the checksum right again.
func setMeta(file []byte, m rawMeta, field int, value uint64) {
	b, ne := file[m.offset+headerSize:], binary.NativeEndian
	ne.PutUint64(b[field:], value)
	h := fnv.New64a()
	h.Write(b[:56])
	ne.PutUint64(b[56:], h.Sum64())
}
