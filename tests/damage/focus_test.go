package damage_test

import "encoding/binary"

// focus is the records whose reads can touch a damaged byte. A read of others
// sees no difference: it need not be repeated a million times. nil is all.
type focus struct {
	marks map[string]bool
	keys  map[string]map[string]bool // by resource
}

// further is how many records beyond a leaf a read that ends there may look at,
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
	f := &focus{marks: map[string]bool{}, keys: map[string]map[string]bool{}}
	switch r := a.of[at]; r {
	case slack, freePage:
		if at%997 == 0 {
			return nil
		}
		return f
	case leafElement, leafKey, recordHeader, recordContent:
	default:
		return nil
	}
	for page := at / pageSize; ; page-- {
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
			if page > 0 && a.overflow[page] {
				continue // of the page before
			}
			return nil // within the root page
		}
		for i := max(first-beyond, 0); i <= min(last+beyond, len(a.records)-1); i++ {
			f.add(a.records[i])
		}
		return f
	}
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
