package boltfile

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// PageCheck looks at the pages of a bucket before bbolt follows them in a write
// transaction. bbolt believes what they say: on branches that lead in a circle it
// goes on until the process ends, and a size that is wrong by one bit it
// allocates, or frees pages by it that are in use.
//
// Until it commits, bbolt changes the content of leaves and leaves the branches as
// they are. So the way that it will go is the one that the last commit left, and
// that is what is looked at. A PageCheck is for one goroutine and one write
// transaction, within Guard.
type PageCheck struct {
	tree    Tree
	checked pageIDs // pages that bbolt may read and replace
	changed pageIDs // leaves that are no more as the last commit left them
	shrunk  pageIDs // leaves from which something was deleted, and the branches above
	leaves  int     // of shrunk
	loose   pageIDs // pages that may be merged with another
	cur     Cursor  // of the path that was looked at last
	side    Cursor  // of a page beside it

	// The leaf that was looked at last, and its keys, [lo, hi); nil is open.
	known  known
	leaf   page
	lo, hi []byte
}

// known is how much was looked at.
type known uint8

const (
	nothing known = iota
	theWay        // the path to the leaf
	around        // and to the leaves that a cursor comes to from there
)

// NewPageCheck returns a PageCheck of what the last commit left of a bucket.
func NewPageCheck(t Tree) *PageCheck {
	return &PageCheck{tree: t, cur: t.Cursor(), side: t.Cursor()}
}

// pageIDs is a set. Most write transactions touch so few pages that a map would
// cost more than all that is done with it.
type pageIDs struct {
	few  [8]uint64
	n    int // of few
	many map[uint64]struct{}
}

func (s *pageIDs) has(id uint64) bool {
	if slices.Contains(s.few[:s.n], id) {
		return true
	}
	_, found := s.many[id]
	return found
}

func (s *pageIDs) add(id uint64) {
	switch {
	case s.n < len(s.few):
		s.few[s.n] = id
		s.n++
	case s.many == nil:
		s.many = map[uint64]struct{}{id: {}}
	default:
		s.many[id] = struct{}{}
	}
}

// put is add of what may be there.
func (s *pageIDs) put(id uint64) {
	if !s.has(id) {
		s.add(id)
	}
}

// Path is to be called before bbolt gets key.
func (c *PageCheck) Path(key []byte) error {
	if c.knows(theWay, key) {
		return nil
	}
	_, err := c.way(key)
	return err
}

// Put is to be called before bbolt puts key.
func (c *PageCheck) Put(key []byte) error {
	if err := c.Path(key); err != nil {
		return err
	}
	c.changed.put(c.leaf.id)
	return nil
}

// Get is Path, and returns the value under key, nil if there is none. changed means
// that the leaf was written to, so that only bbolt knows.
func (c *PageCheck) Get(key []byte) (value []byte, changed bool, err error) {
	if err := c.Path(key); err != nil {
		return nil, false, err
	}
	if c.changed.has(c.leaf.id) {
		return nil, true, nil
	}
	value, bucket, _, err := c.tree.in.leafValue(&c.leaf, key)
	if bucket {
		value = nil
	}
	return value, false, err
}

// Delete is to be called before bbolt deletes key.
//
// A page of which little is left is merged, when the transaction commits, with
// the one before it on its level, or the one behind it. At first that has the
// same branch above it. But branches are merged too, and then the pages at their
// edges come to stand side by side.
func (c *PageCheck) Delete(key []byte) error {
	cur, err := c.way(key)
	if err != nil {
		return err
	}
	c.changed.put(c.leaf.id)
	if c.shrunk.has(c.leaf.id) {
		return nil
	}
	if len(cur.path) > 1 {
		c.leaves++
	}
	for level := len(cur.path) - 1; level > 0; level-- {
		for _, by := range []int{-1, 1} {
			if err := c.beside(level, by); err != nil {
				return err
			}
		}
		c.loose.put(cur.path[level].page.id)
		c.shrunk.put(cur.path[level].page.id)
	}
	c.known = nothing
	return nil
}

// Around is to be called before a cursor of bbolt seeks key, or moves on from it.
func (c *PageCheck) Around(key []byte) error {
	if c.knows(around, key) {
		return nil
	}
	for _, by := range []int{1, -1} {
		cur, err := c.way(key)
		if err == nil {
			err = c.beyond(cur, by)
		}
		if err != nil {
			return err
		}
	}
	c.known = around
	return nil
}

// Last is to be called before a cursor of bbolt moves to the last key.
func (c *PageCheck) Last() error {
	c.known = nothing
	cur := &c.cur
	if err := cur.top(); err != nil {
		return err
	}
	cur.path[0].i = cur.path[0].page.count - 1
	if err := cur.down(true); err != nil {
		return err
	}
	if err := c.wholePath(cur); err != nil {
		return err
	}
	return c.beyond(cur, -1)
}

// Shrunk returns how many leaves may be empty: bbolt keeps those from which
// everything was deleted until it commits.
func (c *PageCheck) Shrunk() int { return c.leaves }

func (c *PageCheck) knows(much known, key []byte) bool {
	return c.known >= much && (c.lo == nil || bytes.Compare(key, c.lo) >= 0) && (c.hi == nil || bytes.Compare(key, c.hi) < 0)
}

// way looks at the path to key.
func (c *PageCheck) way(key []byte) (*Cursor, error) {
	c.known, c.lo, c.hi = nothing, nil, nil
	cur := &c.cur
	if err := cur.find(key); err != nil {
		return nil, err
	}
	for _, at := range cur.path[:len(cur.path)-1] {
		if at.i > 0 {
			c.lo = at.page.key(at.i)
		}
		if at.i+1 < at.page.count {
			c.hi = at.page.key(at.i + 1)
		}
	}
	if err := c.wholePath(cur); err != nil {
		return nil, err
	}
	c.known, c.leaf = theWay, cur.leaf().page
	return cur, nil
}

// beyond looks at the next leaf, and at those behind it while bbolt may find them
// empty.
func (c *PageCheck) beyond(cur *Cursor, by int) error {
	for {
		at := cur.leaf()
		if at.i = at.page.count; by < 0 {
			at.i = 0
		}
		k, _, err := cur.move(by)
		if err != nil || k == nil {
			return err
		}
		if err := c.wholePath(cur); err != nil {
			return err
		}
		if !c.shrunk.has(cur.leaf().page.id) {
			return nil
		}
	}
}

// beside looks at the pages that may be merged with the one of a level of c.cur, on
// one side of it.
//
// A leaf is merged once. A branch may lose more pages after it was merged, and be
// merged again: with the next one, and so on, until those that it consists of have
// enough pages that stay (node.rebalance of bbolt 1.5). Where something was
// deleted, Delete has looked further.
func (c *PageCheck) beside(level, by int) error {
	s, leaf := &c.side, c.cur.path[level].page.leaf
	s.path = append(s.few[:0], c.cur.path[:level+1]...)
	for stay, size := 0, 0; stay <= 2 || size <= int(c.tree.in.size/4); {
		there, err := s.across(by)
		if err != nil || !there {
			return err
		}
		p := &s.leaf().page
		if p.leaf != leaf {
			return c.tree.in.corrupt(p.id, "it is not of the type of page %d beside it", c.cur.path[level].page.id)
		}
		if err := c.wholePath(s); err != nil {
			return err
		}
		c.loose.put(p.id)
		if leaf || c.shrunk.has(p.id) {
			return nil
		}
		for i := range p.count {
			if !c.loose.has(p.child(i)) {
				stay, size = stay+1, size+elementSize+len(p.key(i))
			}
		}
	}
	return nil
}

func (c *PageCheck) wholePath(cur *Cursor) error {
	for i := range cur.path {
		if err := c.whole(&cur.path[i].page); err != nil {
			return err
		}
	}
	return nil
}

// whole is whole of pages, once for each page.
func (c *PageCheck) whole(p *page) error {
	if c.checked.has(p.id) {
		return nil
	}
	if err := c.tree.in.whole(p); err != nil {
		return err
	}
	c.checked.add(p.id)
	return nil
}

// whole returns nil if all elements of a page are as bbolt writes them, one behind
// the other, and if it takes no more pages than they need (node.spill and
// common.WriteInodeToPage of bbolt 1.5).
func (p *pages) whole(pg *page) error {
	ends := uint64(headerSize + elementSize*pg.count)
	for i := range pg.count {
		at := headerSize + elementSize*i
		e := pg.b[at : at+elementSize]
		var pos, size, value uint32
		if pg.leaf {
			pos, size, value = binary.NativeEndian.Uint32(e[4:]), binary.NativeEndian.Uint32(e[8:]), binary.NativeEndian.Uint32(e[12:])
		} else {
			pos, size = binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:])
		}
		if size == 0 || uint64(at)+uint64(pos) != ends {
			return p.badElement(pg, i)
		}
		ends += uint64(size) + uint64(value)
	}
	length := uint64(len(pg.b))
	switch {
	case ends > length:
		return p.corrupt(pg.id, "its elements end after %d bytes, of %d", ends, length)
	case pg.id != 0 && length >= ends+p.size:
		return p.corrupt(pg.id, "its elements end after %d bytes, and it takes %d", ends, length)
	}
	return nil
}
