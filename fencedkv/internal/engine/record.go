package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"
	"unsafe"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

const (
	kindMark  = 'M'
	kindValue = 'V'

	recordHead = 1 + 4 // kind, checksum
	timeSize   = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errShort    = errors.New("the record is too short")
	errKind     = errors.New("the record is of another kind")
	errChecksum = errors.New("the checksum does not match")
)

// checksum covers where a record stands as well as what it says, so that a
// record under a damaged key is found too.
func checksum(kind byte, resource string, key, content []byte) uint32 {
	sum := addLength(addByte(0, kind), len(resource))
	sum = crc32.Update(sum, castagnoli, unsafe.Slice(unsafe.StringData(resource), len(resource)))
	sum = crc32.Update(addLength(sum, len(key)), castagnoli, key)
	return crc32.Update(sum, castagnoli, content)
}

// addByte is crc32.Update for one byte, which there would be allocated.
func addByte(sum uint32, b byte) uint32 {
	return ^(castagnoli[byte(^sum)^b] ^ (^sum >> 8))
}

func addLength(sum uint32, n int) uint32 { return addByte(addByte(sum, byte(n>>8)), byte(n)) }

// EncodeValue returns the value record of value. The record shares no memory
// with value.
func EncodeValue(resource string, key, value []byte) []byte {
	record := make([]byte, recordHead, recordHead+len(value))
	record[0] = kindValue
	binary.BigEndian.PutUint32(record[1:], checksum(kindValue, resource, key, value))
	return append(record, value...)
}

// DecodeValue returns the content of a value record, which shares its memory.
func DecodeValue(resource string, key, record []byte) ([]byte, error) {
	return decode(kindValue, resource, key, record)
}

// EncodeMark returns the mark record of m.
func EncodeMark(resource string, m fence.Mark) []byte {
	record := make([]byte, recordHead, recordHead+timeSize+32)
	record[0] = kindMark
	record = binary.BigEndian.AppendUint64(record, uint64(nanos(m.RaisedAt)))
	record = append(record, m.Token.String()...)
	binary.BigEndian.PutUint32(record[1:], checksum(kindMark, resource, nil, record[recordHead:]))
	return record
}

// DecodeMark returns the mark of a mark record. It is never the zero Mark.
func DecodeMark(resource string, record []byte) (fence.Mark, error) {
	content, err := decode(kindMark, resource, nil, record)
	if err != nil {
		return fence.Mark{}, err
	}
	if len(content) < timeSize {
		return fence.Mark{}, errShort
	}
	t, err := fence.Parse(string(content[timeSize:]))
	if err != nil {
		return fence.Mark{}, fmt.Errorf("token: %w", err)
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(content))).UTC()
	return fence.Mark{Token: t, RaisedAt: at}, nil
}

func decode(kind byte, resource string, key, record []byte) ([]byte, error) {
	switch {
	case len(record) < recordHead:
		return nil, errShort
	case record[0] != kind:
		return nil, errKind
	}
	content := record[recordHead:]
	if binary.BigEndian.Uint32(record[1:]) != checksum(kind, resource, key, content) {
		return nil, errChecksum
	}
	return content, nil
}

// nanos is t.UnixNano within the years 1678 to 2262 and the nearer end outside
// of them, where UnixNano is undefined. A clock that wrong must not stop writes.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}
