package model

// visited is a set of states: open addressing in a table of 16 bytes a state,
// which doubles when it is four fifths full.
type visited struct {
	table []key
	n     int
}

// add reports whether the state is new. The key of all zeros is that of no state
// in which a request is on its way.
func (v *visited) add(k key) bool {
	if 5*(v.n+1) > 4*len(v.table) {
		v.grow()
	}
	if !v.insert(k) {
		return false
	}
	v.n++
	return true
}

func (v *visited) insert(k key) bool {
	mask := uint64(len(v.table) - 1)
	for i := hash(k) & mask; ; i = (i + 1) & mask {
		switch v.table[i] {
		case key{}:
			v.table[i] = k
			return true
		case k:
			return false
		}
	}
}

func (v *visited) grow() {
	old := v.table
	v.table = make([]key, max(2*len(old), 1<<16))
	for _, k := range old {
		if k != (key{}) {
			v.insert(k)
		}
	}
}

func hash(k key) uint64 {
	h := (k.hi ^ k.lo>>32 ^ k.lo<<32) * 0x9e3779b97f4a7c15
	h ^= h >> 29
	h += k.lo
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>32
}
