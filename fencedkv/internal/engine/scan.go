package engine

import (
	"bytes"
	"iter"
)

// KV is a key and its value, both copies.
type KV struct{ Key, Value []byte }

// Scan returns the resource's keys in a range, in order.
func (s *Snapshot) Scan(resource string, r Range) iter.Seq2[KV, error] {
	return scan(resource, r, func(step func(*Snapshot, *overlay) error) error { return step(s, nil) })
}

// Scan returns the resource's keys in a range as t leaves them, in order. Each
// step looks at the writes anew: of the writes that the loop itself makes, those
// ahead of it are seen.
func (t *Tx) Scan(resource string, r Range) iter.Seq2[KV, error] {
	return scan(resource, r, func(step func(*Snapshot, *overlay) error) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.snap == nil {
			return ErrTxDone
		}
		return step(t.snap, t.written(resource))
	})
}

// scan merges stored records and pending writes. Nothing is locked while the
// loop's body runs, so that it may write and may leave in any way.
func scan(resource string, r Range, with func(func(*Snapshot, *overlay) error) error) iter.Seq2[KV, error] {
	return func(yield func(KV, error) bool) {
		// Each use of the sequence is a scan of its own.
		sc := &scanner{resource: resource, prefix: appendPrefix(nil, resource), reverse: r.Reverse}
		sc.lo, sc.hi = r.bounds()
		for {
			var kv KV
			var ok bool
			err := with(func(s *Snapshot, o *overlay) (err error) {
				return s.do(inData, func() error {
					kv, ok, err = sc.step(s, o)
					return err
				})
			})
			if err != nil {
				yield(KV{}, err)
				return
			}
			if !ok || !yield(kv, nil) {
				return
			}
		}
	}
}

type scanner struct {
	resource string
	prefix   []byte // of all its keys in the bucket
	reverse  bool
	lo, hi   []byte // what is left: [lo, hi), hi nil for open

	cursor      cursor
	key, record []byte // the stored record that comes next; key nil at the end
}

// step returns the next key, ok false at the end.
func (sc *scanner) step(s *Snapshot, o *overlay) (kv KV, ok bool, err error) {
	if sc.cursor == nil {
		if sc.hi != nil && string(sc.lo) >= string(sc.hi) {
			return KV{}, false, nil
		}
		if err := sc.checkStart(s); err != nil {
			return KV{}, false, err
		}
		sc.cursor = s.data.cursor()
		first := func() (k, v []byte, err error) { return sc.first(sc.cursor, !sc.reverse) }
		if err := sc.load(s, first); err != nil {
			return KV{}, false, err
		}
	}
	for {
		p, found := sc.pending(o)
		key := sc.key
		switch {
		case sc.key == nil && !found:
			return KV{}, false, nil
		case found && (sc.key == nil || string(sc.key) == p.key || (p.key < string(sc.key)) != sc.reverse):
			key = []byte(p.key)
			kv, ok = KV{key, p.record}, p.record != nil
			if ok {
				kv.Value = append([]byte{}, p.record[recordHead:]...)
			}
		default:
			value, err := s.decodeValue(sc.resource, sc.key, sc.record)
			if err != nil {
				return KV{}, false, err
			}
			kv, ok = KV{bytes.Clone(sc.key), append([]byte{}, value...)}, true
		}
		stored := sc.key != nil && string(sc.key) == string(key)
		sc.pass(key)
		if stored {
			if err := sc.load(s, sc.advance); err != nil {
				return KV{}, false, err
			}
		}
		if ok {
			return kv, true, nil
		}
	}
}

// pass takes key, and what lies before it, out of what is left.
func (sc *scanner) pass(key []byte) {
	if sc.reverse {
		sc.hi = bytes.Clone(key)
		return
	}
	sc.lo = append(bytes.Clone(key), 0) // the lowest key above it
}

// pending returns the next pending write.
func (sc *scanner) pending(o *overlay) (p pending, found bool) {
	switch {
	case !sc.reverse:
		p, found = o.ceil(string(sc.lo))
		return p, found && (sc.hi == nil || p.key < string(sc.hi))
	case sc.hi == nil:
		p, found = o.last()
	default:
		p, found = o.below(string(sc.hi))
	}
	return p, found && p.key >= string(sc.lo)
}

// first moves a cursor to one of the two records between which the scan begins:
// the one above, or the one below. The scan's own first record is the one ahead.
func (sc *scanner) first(c cursor, above bool) (k, v []byte, err error) {
	edge := EncodeKey(sc.resource, sc.lo)
	if sc.reverse {
		edge = EncodeKey(sc.resource, sc.hi)
		if sc.hi == nil {
			edge = successor(edge) // never nil: the length in front is below 0xffff
		}
	}
	k, v, err = c.Seek(edge)
	switch {
	case above || err != nil:
		return k, v, err
	case k == nil:
		return c.Last()
	}
	return c.Prev()
}

func (sc *scanner) advance() (k, v []byte, err error) {
	if sc.reverse {
		return sc.cursor.Prev()
	}
	return sc.cursor.Next()
}

// load moves the cursor and takes what it finds as the next stored record. One
// that lies ahead of the range ends the scan, if it is believable that nothing
// of the range is missing before it.
func (sc *scanner) load(s *Snapshot, move step) error {
	k, v, err := move()
	sc.key, sc.record = nil, nil
	if k == nil || err != nil {
		return err
	}
	switch side := sc.side(k); side {
	case 0:
		sc.key, sc.record = k[len(sc.prefix):], v
		return nil
	case sc.ahead():
		return s.border(&s.data, k, v, sc.advance, side, s.soundValue)
	}
	return s.misplaced(&s.data, k, "it is out of order")
}

// checkStart looks at the record behind the range: a flipped bit can have moved
// a record there, or the search, so that the scan would begin too late.
func (sc *scanner) checkStart(s *Snapshot) error {
	c := s.data.cursor()
	further := c.Prev
	if sc.reverse {
		further = c.Next
	}
	k, v, err := sc.first(c, sc.reverse)
	switch {
	case k == nil || err != nil:
		return err
	case sc.side(k) != -sc.ahead():
		return s.misplaced(&s.data, k, "it is out of order")
	}
	return s.border(&s.data, k, v, further, -sc.ahead(), s.soundValue)
}

// ahead is the side on which a scan ends.
func (sc *scanner) ahead() int {
	if sc.reverse {
		return -1
	}
	return 1
}

// side returns where a key of the bucket lies: -1 below what is left of the
// range, 0 in it, 1 above.
func (sc *scanner) side(k []byte) int {
	if !bytes.HasPrefix(k, sc.prefix) {
		return bytes.Compare(k, sc.prefix)
	}
	switch key := k[len(sc.prefix):]; {
	case string(key) < string(sc.lo):
		return -1
	case sc.hi != nil && string(key) >= string(sc.hi):
		return 1
	}
	return 0
}
