package engine

import (
	"bytes"
	"fmt"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Mark returns the mark of resource, the zero Mark if it has none.
func (s *Snapshot) Mark(resource string) (m fence.Mark, err error) {
	err = s.do(inMarks, func() error {
		m, _, err = s.mark(resource)
		return err
	})
	return m, err
}

// mark returns a mark and its record, which lives as long as the transaction.
func (s *Snapshot) mark(resource string) (fence.Mark, []byte, error) {
	record, err := s.marks.Get([]byte(resource))
	if err != nil {
		return fence.Mark{}, nil, err
	}
	if record == nil {
		return fence.Mark{}, nil, s.noMark(resource)
	}
	m, err := s.decodeMark(resource, record)
	return m, record, err
}

func (s *Snapshot) decodeMark(resource string, record []byte) (fence.Mark, error) {
	m, err := DecodeMark(resource, record)
	if err != nil {
		return m, s.damagedMark(resource, err.Error())
	}
	return m, nil
}

// noMark returns nil if it is believable that resource has no mark.
//
// One flipped bit can hide a mark, and the rule would read that as "nothing
// admitted yet". So the records on both sides must be sound and enclose the
// place, the resource must hold no data, and a store without a record must say
// in its header that it has none.
func (s *Snapshot) noMark(resource string) error {
	neighbours, err := s.absent(&s.marks, []byte(resource), func(k, v []byte) error {
		_, err := s.decodeMark(string(k), v)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.find(inHeader | inData); err != nil {
		return err
	}
	h := s.counts
	if h == nil {
		read, err := s.readHeader()
		if err != nil {
			return err
		}
		h = &read
	}
	if (h.Marks.Count == 0) != (neighbours == 0) {
		return s.damagedMark(resource, fmt.Sprintf("it is missing, and so are others: the header counts %d marks", h.Marks.Count))
	}
	prefix := appendPrefix(nil, resource)
	k, _, err := s.data.cursor().Seek(prefix)
	if err == nil && bytes.HasPrefix(k, prefix) {
		return s.damagedMark(resource, "it is missing, but the resource holds data")
	}
	return err
}

// Marked is a resource and its mark.
type Marked struct {
	Resource string
	Mark     fence.Mark
}

// Marks returns up to n resources in order of their names: those after the last
// one of the page before, or from the first if that is empty.
func (s *Snapshot) Marks(after string, n int) (page []Marked, err error) {
	err = s.do(inMarks, func() error {
		c := s.marks.cursor()
		k, v, err := c.First()
		if after != "" {
			// Marks are never deleted, so what a page ended with is there.
			k, v, err = c.Seek([]byte(after))
			switch {
			case err != nil:
				return err
			case string(k) != after:
				return s.damagedMark(after, "it was there and is missing")
			}
			// A flipped bit may have given another mark this name.
			if _, err := s.decodeMark(after, v); err != nil {
				return err
			}
			k, v, err = c.Next()
		}
		for ; err == nil && k != nil && len(page) < n; k, v, err = c.Next() {
			resource := string(k)
			if resource <= after {
				return s.misplaced(&s.marks, k, "it is out of order")
			}
			m, err := s.decodeMark(resource, v)
			if err != nil {
				return err
			}
			page = append(page, Marked{resource, m})
			after = resource
		}
		return err
	})
	return page, err
}
