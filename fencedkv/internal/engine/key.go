package engine

import (
	"encoding/binary"
	"fmt"
)

// appendPrefix appends what all keys of resource in the data bucket begin with,
// and the keys of no other resource.
func appendPrefix(b []byte, resource string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(resource)))
	return append(b, resource...)
}

// EncodeKey returns the key in the data bucket of a key of resource.
func EncodeKey(resource string, key []byte) []byte {
	b := make([]byte, 0, 2+len(resource)+len(key))
	return append(appendPrefix(b, resource), key...)
}

// DecodeKey is the inverse of EncodeKey. The key shares memory with b.
func DecodeKey(b []byte) (resource string, key []byte, err error) {
	if len(b) < 2 {
		return "", nil, fmt.Errorf("a key of %d bytes is too short", len(b))
	}
	n := int(binary.BigEndian.Uint16(b))
	if n == 0 || n >= len(b)-2 {
		return "", nil, fmt.Errorf("a key of %d bytes cannot have a resource of %d bytes", len(b), n)
	}
	return string(b[2 : 2+n]), b[2+n:], nil
}

// Range is a set of keys of one resource: those that have Prefix and lie in
// [Start, End). An empty bound is no bound.
type Range struct {
	Prefix, Start, End []byte
	Reverse            bool
}

// bounds returns the same set as an interval [lo, hi); hi is nil if it is open.
func (r Range) bounds() (lo, hi []byte) {
	lo = r.Prefix
	if string(r.Start) > string(lo) {
		lo = r.Start
	}
	hi = successor(r.Prefix)
	if len(r.End) > 0 && (hi == nil || string(r.End) < string(hi)) {
		hi = r.End
	}
	return lo, hi
}

// successor returns the lowest key above all keys with the prefix, nil if there
// is none.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			next := append([]byte(nil), prefix[:i+1]...)
			next[i]++
			return next
		}
	}
	return nil
}
