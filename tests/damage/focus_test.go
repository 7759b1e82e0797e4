package damage_test

import "encoding/binary"

// focus is the records whose reads can touch a damaged byte. A read of others
// sees no difference: it need not be repeated a million times. nil is all.
type focus struct {
	marks map[string]bool
	keys  map[string]map[string]bool // by resource
}

func newFocus() *focus {
	return &focus{marks: map[string]bool{}, keys: map[string]map[string]bool{}}
}

// beyond is how many records beyond a leaf a read that ends there may look at,
// and so how far away a read may begin that looks at the leaf.
const beyond = 3

// stored is a record in a leaf of its own.
type stored struct {
	page int
	mark bool
	key  []byte // as bbolt has it
}

// focusOf returns what to read when a byte was changed.
func (a *anatomy) focusOf(at int) *focus {
	f := newFocus()
	switch page := at / pageSize; {
	case a.of[at] == slack || a.of[at] == freePage:
		if at%997 == 0 {
			return nil
		}
		return f // nobody looks at it, not even those who look at everything
	case a.children[page] != nil:
		// The search for any key can look at any key of a branch: some records of
		// all leaves, and all that lie below this element.
		f.spread(a)
		for _, child := range a.children[page] {
			if at >= child.at && at < child.at+element || at >= child.key && at < child.key+child.size {
				f.addLeaf(a, child.page)
			}
		}
		return f
	default:
		for a.overflow[page] {
			page--
		}
		if !f.addLeaf(a, page) {
			f.spread(a) // meta, free list, root: before every search
		}
		return f
	}
}

// spread adds some records of each leaf, the first and the last among them.
func (f *focus) spread(a *anatomy) {
	for i, s := range a.records {
		if i == 0 || i+1 == len(a.records) || a.records[i-1].page != s.page || a.records[i+1].page != s.page || i%20 == 0 {
			f.add(s)
		}
	}
}

// addLeaf adds the records of a leaf and those beside it. It reports whether
// there are any.
func (f *focus) addLeaf(a *anatomy, page int) bool {
	first, last := -1, -1
	for i, s := range a.records {
		if s.page == page {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return false
	}
	for i := max(first-beyond, 0); i <= min(last+beyond, len(a.records)-1); i++ {
		f.add(a.records[i])
	}
	return true
}

func (f *focus) add(s stored) {
	if s.mark {
		f.marks[string(s.key)] = true
		return
	}
	n := binary.BigEndian.Uint16(s.key)
	resource, key := string(s.key[2:2+n]), string(s.key[2+n:])
	if f.keys[resource] == nil {
		f.keys[resource] = map[string]bool{}
	}
	f.keys[resource][key] = true
}

func (f *focus) mark(resource string) bool { return f == nil || f.marks[resource] }

func (f *focus) resource(name string) bool { return f == nil || f.keys[name] != nil }

func (f *focus) key(resource, key string) bool { return f == nil || f.keys[resource][key] }
