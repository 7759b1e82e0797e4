package boltfile

import "bytes"

// Cursor moves over the elements of a Tree, in the order of their keys. The zero
// key is the end, on both sides; from there only First, Last and Seek lead on.
// After an error the cursor stands at the end. The value of a bucket is nil. A
// Cursor is for one goroutine, and is not copied once it was used.
type Cursor struct {
	tree Tree
	path []place  // from the root to a leaf
	few  [4]place // room for most paths
}

// place is an element of a page.
type place struct {
	page page
	i    int
}

// Cursor returns a cursor at the end.
func (t Tree) Cursor() Cursor { return Cursor{tree: t} }

// First moves to the lowest key.
func (c *Cursor) First() (key, value []byte, err error) {
	if err := c.top(); err != nil {
		return nil, nil, err
	}
	if err := c.down(false); err != nil {
		return nil, nil, err
	}
	if c.leaf().page.count == 0 {
		return c.Next()
	}
	return c.element()
}

// Last moves to the highest key.
func (c *Cursor) Last() (key, value []byte, err error) {
	if err := c.top(); err != nil {
		return nil, nil, err
	}
	c.path[0].i = c.path[0].page.count - 1
	if err := c.down(true); err != nil {
		return nil, nil, err
	}
	if c.leaf().page.count == 0 {
		return c.Prev()
	}
	return c.element()
}

// Seek moves to key, or to the next one above it if it is not there.
func (c *Cursor) Seek(key []byte) (k, value []byte, err error) {
	if err := c.find(key); err != nil {
		return nil, nil, err
	}
	if at := c.leaf(); at.i == at.page.count {
		at.i--
		return c.Next()
	}
	return c.element()
}

// Next moves to the next higher key.
func (c *Cursor) Next() (key, value []byte, err error) { return c.move(1) }

// Prev moves to the next lower key.
func (c *Cursor) Prev() (key, value []byte, err error) { return c.move(-1) }

// move moves by one element. Every step goes on in a page or leaves one, and a
// page that is entered lies between the keys that lead to it, so it ends.
func (c *Cursor) move(by int) (key, value []byte, err error) {
	for len(c.path) > 0 {
		at := c.leaf()
		if i := at.i + by; i < 0 || i >= at.page.count {
			c.path = c.path[:len(c.path)-1]
			continue
		}
		at.i += by
		if err := c.down(by < 0); err != nil {
			return nil, nil, err
		}
		if c.leaf().page.count > 0 {
			return c.element()
		}
	}
	return nil, nil, nil
}

// find moves to the place of key in the leaf that it belongs to, which is behind
// the last element if all of them are lower.
func (c *Cursor) find(key []byte) error {
	if err := c.top(); err != nil {
		return err
	}
	for {
		at := c.leaf()
		var ok bool
		if at.page.leaf {
			at.i, _, ok = at.page.search(key)
		} else {
			at.i, ok = at.page.descent(key)
		}
		switch {
		case !ok:
			return c.fail(c.tree.in.badElement(&at.page, at.i))
		case at.page.leaf:
			return nil
		}
		if err := c.enter(); err != nil {
			return err
		}
	}
}

// leaf is the lowest place.
func (c *Cursor) leaf() *place { return &c.path[len(c.path)-1] }

func (c *Cursor) top() error {
	p, err := c.tree.top()
	if err != nil {
		return c.fail(err)
	}
	c.path = append(c.few[:0], place{page: p})
	return nil
}

// down goes down to the first element of a leaf, or to the last one.
func (c *Cursor) down(last bool) error {
	for !c.leaf().page.leaf {
		if err := c.enter(); err != nil {
			return err
		}
		if last {
			c.leaf().i = c.leaf().page.count - 1
		}
	}
	return nil
}

// across moves to the page beside the lowest one, on the same level. There may be
// none.
func (c *Cursor) across(by int) (there bool, err error) {
	level := len(c.path)
	for len(c.path) > 1 {
		c.path = c.path[:len(c.path)-1]
		at := c.leaf()
		if i := at.i + by; i < 0 || i >= at.page.count {
			continue
		}
		at.i += by
		for len(c.path) < level {
			if p := &c.leaf().page; p.leaf {
				return false, c.fail(c.tree.in.corrupt(p.id, "it is a leaf, and those beside it are %d levels deeper", level-len(c.path)))
			}
			if err := c.enter(); err != nil {
				return false, err
			}
			if by < 0 {
				c.leaf().i = c.leaf().page.count - 1
			}
		}
		return true, nil
	}
	return false, nil
}

// enter goes down by one page.
func (c *Cursor) enter() error {
	p, err := c.child(len(c.path) - 1)
	if err == nil && len(c.path) == maxDepth {
		err = c.tree.in.circle(p.id)
	}
	if err != nil {
		return c.fail(err)
	}
	c.path = append(c.path, place{page: p})
	return nil
}

// child returns the page that the place of a level leads to.
func (c *Cursor) child(level int) (page, error) {
	above := &c.path[level]
	id := above.page.child(above.i)
	for _, at := range c.path[:level+1] {
		if at.page.id == id {
			return page{}, c.tree.in.circle(id)
		}
	}
	p, err := c.tree.in.page(id)
	if err == nil && !above.encloses(&p) {
		err = c.tree.in.corrupt(id, "its keys are not those that page %d leads to it for", above.page.id)
	}
	return p, err
}

// encloses reports whether a child begins with the key that the branch has for
// it, as bbolt sees to, and ends before the next one. If the branch had a lower
// key, reads would be right; a write would leave the child in the branch twice,
// as it was and as it is. bbolt keeps no empty page below a branch: one that says
// that it is hides what it has.
func (p *place) encloses(child *page) bool {
	if child.count == 0 {
		return false
	}
	lo, first := p.page.key(p.i), child.key(0)
	if lo == nil || first == nil || !bytes.Equal(first, lo) {
		return false
	}
	if p.i+1 == p.page.count {
		return true
	}
	hi, last := p.page.key(p.i+1), child.key(child.count-1)
	return hi != nil && last != nil && bytes.Compare(last, hi) < 0
}

func (c *Cursor) fail(err error) error {
	c.path = nil
	return err
}

func (c *Cursor) element() (key, value []byte, err error) {
	at := c.leaf()
	key, value, bucket, err := c.tree.in.leafElement(&at.page, at.i)
	switch {
	case err != nil:
		return nil, nil, c.fail(err)
	case bucket:
		value = nil
	}
	return key, value, nil
}
