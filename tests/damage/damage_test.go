package damage_test

import (
	"bytes"
	"fmt"
)

// A kind of damage is numbered: parent and worker mean the same by a number.
type kind string

const (
	flip kind = "flip" // one bit, by its number
	zero kind = "zero" // one page
	swap kind = "swap" // two pages: each with each
	lose kind = "lose" // one page, replaced by what stood there after an older commit
	// settled is a flip after which good writes go on.
	settled kind = "settled"
)

// number returns how many damages of a kind a corpus has.
func (c *corpus) number(k kind) int {
	pages := len(c.sound) / pageSize
	switch k {
	case zero:
		return pages
	case swap:
		return pages * pages
	case lose:
		return pages * len(c.older)
	}
	return len(c.sound) * 8
}

// damaged returns where the n-th damage of a kind changes the file, and what to.
// nil means that it changes nothing.
func (c *corpus) damaged(k kind, n int) []patch {
	pages := len(c.sound) / pageSize
	page := func(i int) []byte { return c.sound[i*pageSize : (i+1)*pageSize] }
	switch k {
	case zero:
		return []patch{{n * pageSize, make([]byte, pageSize)}}
	case swap:
		a, b := n/pages, n%pages
		if a >= b {
			return nil
		}
		return []patch{{a * pageSize, page(b)}, {b * pageSize, page(a)}}
	case lose:
		at, older := n%pages*pageSize, c.older[n/pages]
		if at >= len(older) || bytes.Equal(page(n%pages), older[at:at+pageSize]) {
			return nil
		}
		return []patch{{at, older[at : at+pageSize]}}
	}
	return []patch{{n / 8, []byte{c.sound[n/8] ^ 1<<(n%8)}}}
}

type patch struct {
	at int
	to []byte
}

// describe says what the damage is, for people.
func (c *corpus) describe(a *anatomy, k kind, n int) string {
	pages := len(c.sound) / pageSize
	switch k {
	case zero:
		return fmt.Sprintf("%s: page %d zeroed", c.Name, n)
	case swap:
		return fmt.Sprintf("%s: pages %d and %d swapped", c.Name, n/pages, n%pages)
	case lose:
		return fmt.Sprintf("%s: page %d as after commit %d of %d", c.Name, n%pages, n/pages, len(c.older))
	}
	return fmt.Sprintf("%s: bit %d (page %d, offset %d, bit %d, %v) flipped", c.Name, n, n/8/pageSize, n/8%pageSize, n%8, a.of[n/8])
}
