package engine

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

const (
	magic         = "fencedkv"
	formatVersion = 1
	headerSize    = 76
	headerFixed   = 16 // what has one meaning in every version
)

// Header is the content of the header record.
type Header struct {
	ID          [16]byte
	Marks       Tally
	Values      Tally
	LostCommits uint32 // accepted at Open
	LastLost    time.Time
}

// Tally is the number and the digest of all records of one kind.
type Tally struct{ Count, Digest uint64 }

func newHeader() Header {
	var h Header
	rand.Read(h.ID[:]) // never fails, see crypto/rand
	return h
}

// Encode returns the header record.
func (h Header) Encode() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	binary.BigEndian.PutUint32(b[12:], formatVersion)
	copy(b[16:], h.ID[:])
	binary.BigEndian.PutUint64(b[32:], h.Marks.Count)
	binary.BigEndian.PutUint64(b[40:], h.Marks.Digest)
	binary.BigEndian.PutUint64(b[48:], h.Values.Count)
	binary.BigEndian.PutUint64(b[56:], h.Values.Digest)
	binary.BigEndian.PutUint32(b[64:], h.LostCommits)
	if !h.LastLost.IsZero() {
		binary.BigEndian.PutUint64(b[68:], uint64(nanos(h.LastLost)))
	}
	binary.BigEndian.PutUint32(b[8:], headerChecksum(b))
	return b
}

// errFormat: the record is sound and of another program or version.
var errFormat = errors.New("not a header of this version")

// DecodeHeader reads a header record.
func DecodeHeader(b []byte) (Header, error) {
	var h Header
	switch {
	case len(b) < headerFixed:
		return h, errShort
	case headerChecksum(b) != binary.BigEndian.Uint32(b[8:]):
		return h, errChecksum
	case string(b[:8]) != magic:
		return h, fmt.Errorf("%w: its header is not one of fencedkv", errFormat)
	}
	if v := binary.BigEndian.Uint32(b[12:]); v != formatVersion {
		return h, fmt.Errorf("%w: it has version %d, this program reads version %d", errFormat, v, formatVersion)
	}
	if len(b) != headerSize {
		return h, errors.New("the header has a wrong size")
	}
	copy(h.ID[:], b[16:])
	h.Marks.Count = binary.BigEndian.Uint64(b[32:])
	h.Marks.Digest = binary.BigEndian.Uint64(b[40:])
	h.Values.Count = binary.BigEndian.Uint64(b[48:])
	h.Values.Digest = binary.BigEndian.Uint64(b[56:])
	h.LostCommits = binary.BigEndian.Uint32(b[64:])
	if at := int64(binary.BigEndian.Uint64(b[68:])); at != 0 {
		h.LastLost = time.Unix(0, at).UTC()
	}
	return h, nil
}

func headerChecksum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:8])
	return crc32.Update(sum, castagnoli, b[12:])
}

// idText is how people see a store's id.
func (h Header) idText() string { return hex.EncodeToString(h.ID[:]) }

// replace accounts for a record that takes the place of old. Either may be nil.
func (t *Tally) replace(old, record []byte) {
	if old != nil {
		t.Count--
		t.Digest -= digest(old)
	}
	if record != nil {
		t.Count++
		t.Digest += digest(record)
	}
}

// digest is one record's share of a Tally: its checksum, which covers the names
// and the content, and the size of its content, mixed so that a sum of many tells
// which they are. The mixing is the finalizer of SplitMix64 (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
func digest(record []byte) uint64 {
	if len(record) < recordHead {
		return 0
	}
	z := uint64(binary.BigEndian.Uint32(record[1:])) | uint64(len(record)-recordHead)<<32
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
