package engine

import (
	"crypto/rand"
	"crypto/sha256"
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
	headerSize    = 60
	headerFixed   = 16 // what has one meaning in every version
)

// Header is the content of the header record.
type Header struct {
	ID          [16]byte
	Marks       uint64 // number of mark records
	Digest      uint64 // of all mark records
	LostCommits uint32 // accepted at Open
	LastLost    time.Time
}

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
	binary.BigEndian.PutUint64(b[32:], h.Marks)
	binary.BigEndian.PutUint64(b[40:], h.Digest)
	binary.BigEndian.PutUint32(b[48:], h.LostCommits)
	if !h.LastLost.IsZero() {
		binary.BigEndian.PutUint64(b[52:], uint64(nanos(h.LastLost)))
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
	h.Marks = binary.BigEndian.Uint64(b[32:])
	h.Digest = binary.BigEndian.Uint64(b[40:])
	h.LostCommits = binary.BigEndian.Uint32(b[48:])
	if at := int64(binary.BigEndian.Uint64(b[52:])); at != 0 {
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

// replaceMark accounts for a mark record that takes the place of old, which is
// nil for the first mark of a resource.
func (h *Header) replaceMark(resource string, old, record []byte) {
	if old == nil {
		h.Marks++
	} else {
		h.Digest -= digest(resource, old)
	}
	h.Digest += digest(resource, record)
}

// digest is one mark's share of Header.Digest.
func digest(resource string, record []byte) uint64 {
	b := make([]byte, 0, 256)
	b = binary.BigEndian.AppendUint16(b, uint16(len(resource)))
	b = append(b, resource...)
	b = append(b, record...)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}
