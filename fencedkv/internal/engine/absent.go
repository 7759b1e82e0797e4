package engine

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// absent returns nil if the bucket's records on both sides of key are sound and
// enclose it, and how many there are.
func (s *Snapshot) absent(bucket *bbolt.Bucket, key []byte, sound func(k, v []byte) error) (int, error) {
	c := bucket.Cursor()
	n := 0
	check := func(k, v []byte, further func() ([]byte, []byte), order int) error {
		if k == nil {
			return nil
		}
		n++
		if bytes.Compare(k, key) != order {
			return s.misplaced(bucket, k, "it is out of order")
		}
		return s.border(bucket, k, v, further, order, sound)
	}
	next, v := c.Seek(key)
	if err := check(next, v, c.Next, 1); err != nil {
		return n, err
	}
	var prev []byte
	if next == nil {
		prev, v = c.Last()
	} else {
		c.Seek(key)
		prev, v = c.Prev()
	}
	return n, check(prev, v, c.Prev, -1)
}

// border returns nil if the record at k, beyond which something is not there, is
// sound. A flipped bit can also show a sound record in the wrong place, so that
// the order must hold one record further: order is 1 if that has a higher key,
// -1 if it has a lower one.
func (s *Snapshot) border(bucket *bbolt.Bucket, k, v []byte, further func() ([]byte, []byte), order int, sound func(k, v []byte) error) error {
	if err := sound(k, v); err != nil {
		return err
	}
	if beyond, _ := further(); beyond != nil && bytes.Compare(beyond, k) != order {
		return s.misplaced(bucket, beyond, "it is out of order")
	}
	return nil
}

func (s *Snapshot) misplaced(bucket *bbolt.Bucket, key []byte, problem string) error {
	if bucket == s.marks {
		return s.damagedMark(string(key), problem)
	}
	resource, k, err := DecodeKey(key)
	if err != nil {
		problem = err.Error()
	}
	return s.damagedValue(resource, k, problem)
}

func (s *Snapshot) damagedMark(resource, problem string) error {
	return &Damage{Path: s.path, Kind: "mark", Resource: resource, Problem: problem}
}

func (s *Snapshot) damagedValue(resource string, key []byte, problem string) error {
	return &Damage{Path: s.path, Kind: "value", Resource: resource, Key: bytes.Clone(key), Problem: problem}
}
