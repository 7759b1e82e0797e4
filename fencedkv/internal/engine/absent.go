package engine

import "bytes"

// absent returns nil if the bucket's records on both sides of key are sound and
// enclose it, and how many there are.
func (s *Snapshot) absent(b *bucket, key []byte, sound func(k, v []byte) error) (int, error) {
	c := b.cursor()
	n := 0
	check := func(k, v []byte, further step, order int) error {
		if k == nil {
			return nil
		}
		n++
		if bytes.Compare(k, key) != order {
			return s.misplaced(b, k, "it is out of order")
		}
		return s.border(b, k, v, further, order, sound)
	}
	next, v, err := c.Seek(key)
	if err != nil {
		return n, err
	}
	if err := check(next, v, c.Next, 1); err != nil {
		return n, err
	}
	var prev []byte
	if next == nil {
		prev, v, err = c.Last()
	} else {
		if _, _, err := c.Seek(key); err != nil {
			return n, err
		}
		prev, v, err = c.Prev()
	}
	if err != nil {
		return n, err
	}
	return n, check(prev, v, c.Prev, -1)
}

// step is a move of a cursor.
type step = func() (key, record []byte, err error)

// border returns nil if the record at k, beyond which something is not there, is
// sound. A flipped bit can also show a sound record in the wrong place, so that
// the order must hold one record further: order is 1 if that has a higher key,
// -1 if it has a lower one.
func (s *Snapshot) border(b *bucket, k, v []byte, further step, order int, sound func(k, v []byte) error) error {
	if err := sound(k, v); err != nil {
		return err
	}
	beyond, _, err := further()
	if err != nil {
		return err
	}
	if beyond != nil && bytes.Compare(beyond, k) != order {
		return s.misplaced(b, beyond, "it is out of order")
	}
	return nil
}

func (s *Snapshot) misplaced(b *bucket, key []byte, problem string) error {
	if b == &s.marks {
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
