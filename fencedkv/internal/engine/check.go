package engine

import (
	"bytes"
	"context"
	"fmt"
)

// Header returns the header record.
func (s *Snapshot) Header() (h Header, err error) {
	err = s.do(inHeader, func() error {
		h, err = s.readHeader()
		return err
	})
	return h, err
}

// Check reads everything: header, all marks and values, their numbers and
// digests, that each value belongs to a resource with a mark, and that each page
// is used once. It returns the first *Damage or *boltfile.CorruptError that it
// finds, or ctx's error.
func (s *Snapshot) Check(ctx context.Context) error {
	if err := s.openAll(); err != nil {
		return err
	}
	h, err := s.Header()
	if err != nil {
		return err
	}
	if err := s.checkMarks(ctx, h); err != nil {
		return err
	}
	if err := s.checkValues(ctx, h); err != nil {
		return err
	}
	return s.checkPages(ctx, true)
}

// What Open checks, so that it stays quick on large files.
const (
	// recordsAtOpen is up to how many marks, and how many values, are compared
	// with their digest. If there are no more of both, all pages are looked at.
	recordsAtOpen = 1024
	// pagesAtOpen is up to how many pages the branches of all trees are looked at.
	pagesAtOpen = 1 << 12
)

// checkAtOpen checks what is worth its time.
func (s *Snapshot) checkAtOpen(h Header) error {
	ctx := context.Background()
	if h.Marks.Count <= recordsAtOpen {
		if err := s.checkMarks(ctx, h); err != nil {
			return err
		}
	}
	if h.Values.Count <= recordsAtOpen {
		if err := s.checkTally(ctx, "values", &s.data, h.Values, nil); err != nil {
			return err
		}
	}
	few := h.Marks.Count <= recordsAtOpen && h.Values.Count <= recordsAtOpen
	if few || s.state.Pages() <= pagesAtOpen {
		return s.checkPages(ctx, few)
	}
	return nil
}

// checkPages looks at the pages of the state that is read. It takes no other State
// for it: where none is shared that one could wait for a commit, and the commit for
// this one.
func (s *Snapshot) checkPages(ctx context.Context, leaves bool) error {
	return s.do(0, func() error { return s.state.CheckPages(ctx, leaves) })
}

// checkEvery is how many records are checked between two looks at the context.
const checkEvery = 256

func (s *Snapshot) checkMarks(ctx context.Context, h Header) error {
	return s.checkTally(ctx, "marks", &s.marks, h.Marks, func(k, record []byte) error {
		_, err := s.decodeMark(string(k), record)
		return err
	})
}

func (s *Snapshot) checkValues(ctx context.Context, h Header) error {
	last := ""
	return s.checkTally(ctx, "values", &s.data, h.Values, func(k, record []byte) error {
		if err := s.soundValue(k, record); err != nil {
			return err
		}
		resource, _, _ := DecodeKey(k)
		if resource == last {
			return nil
		}
		last = resource
		mark, err := s.marks.Get([]byte(resource))
		if err == nil && mark == nil {
			return s.damagedMark(resource, "it is missing, but the resource holds data")
		}
		return err
	})
}

// checkTally compares the records of a bucket with their tally. sound, which may
// be nil, is called with each.
func (s *Snapshot) checkTally(ctx context.Context, what string, b *bucket, want Tally, sound func(k, record []byte) error) error {
	var have Tally
	err := s.walk(ctx, b, func(k, record []byte) error {
		have.replace(nil, record)
		if sound == nil {
			return nil
		}
		return sound(k, record)
	})
	switch {
	case err != nil:
		return err
	case have.Count != want.Count:
		return &Damage{Path: s.path, Kind: "digest", Problem: fmt.Sprintf("%d %s are there, the header counts %d", have.Count, what, want.Count)}
	case have.Digest != want.Digest:
		return &Damage{Path: s.path, Kind: "digest", Problem: "the " + what + " are not those that were last written"}
	}
	return nil
}

// walk calls fn, which must not keep its arguments, with every record of a
// bucket in order.
func (s *Snapshot) walk(ctx context.Context, b *bucket, fn func(k, record []byte) error) error {
	var last []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		done := false
		err := s.do(0, func() error {
			c := b.cursor()
			move := c.First
			if last != nil {
				if _, _, err := c.Seek(last); err != nil {
					return err
				}
				move = c.Next
			}
			k, v, err := move()
			for range checkEvery {
				if done = k == nil; done || err != nil {
					return err
				}
				if last != nil && bytes.Compare(k, last) <= 0 {
					return s.misplaced(b, k, "it is out of order")
				}
				if err := fn(k, v); err != nil {
					return err
				}
				last = append(last[:0], k...)
				k, v, err = c.Next()
			}
			return err
		})
		if err != nil || done {
			return err
		}
	}
}
