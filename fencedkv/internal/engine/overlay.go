package engine

import (
	"slices"
	"sort"
	"strings"
)

// overlay is the ordered set of one resource's writes that wait for the end of
// a transaction.
//
// It is a list of chunks: a sorted slice would cost a move of everything behind
// for each insertion, and a map has no order to scan in.
type overlay struct {
	chunks [][]pending // none empty, in order
}

type pending struct {
	key    string
	record []byte // nil is a deletion
}

const chunkSize = 512

// chunk returns the index of the chunk that key belongs to.
func (o *overlay) chunk(key string) int {
	i := sort.Search(len(o.chunks), func(i int) bool { return o.chunks[i][0].key > key })
	return max(i-1, 0)
}

// all returns the writes in order.
func (o *overlay) all(yield func(pending) bool) {
	if o == nil {
		return
	}
	for _, chunk := range o.chunks {
		for _, p := range chunk {
			if !yield(p) {
				return
			}
		}
	}
}

func find(chunk []pending, key string) (int, bool) {
	return slices.BinarySearchFunc(chunk, key, func(p pending, key string) int { return strings.Compare(p.key, key) })
}

// set stores a write. It returns by how many bytes the overlay grew, and whether
// there was none of key.
func (o *overlay) set(key string, record []byte) (grown int, added bool) {
	if len(o.chunks) == 0 {
		o.chunks = [][]pending{{{key, record}}}
		return pendingCost + len(key) + len(record), true
	}
	c := o.chunk(key)
	i, found := find(o.chunks[c], key)
	if found {
		grown = len(record) - len(o.chunks[c][i].record)
		o.chunks[c][i].record = record
		return grown, false
	}
	o.chunks[c] = slices.Insert(o.chunks[c], i, pending{key, record})
	if n := len(o.chunks[c]); n > chunkSize {
		upper := slices.Clone(o.chunks[c][n/2:])
		o.chunks[c] = slices.Delete(o.chunks[c], n/2, n)
		o.chunks = slices.Insert(o.chunks, c+1, upper)
	}
	return pendingCost + len(key) + len(record), true
}

// pendingCost is about what a pending write takes besides key and record.
const pendingCost = 64

func (o *overlay) get(key string) (pending, bool) {
	if o == nil || len(o.chunks) == 0 {
		return pending{}, false
	}
	chunk := o.chunks[o.chunk(key)]
	i, found := find(chunk, key)
	if !found {
		return pending{}, false
	}
	return chunk[i], true
}

// ceil returns the first write whose key is at least key.
func (o *overlay) ceil(key string) (pending, bool) {
	if o == nil || len(o.chunks) == 0 {
		return pending{}, false
	}
	c := o.chunk(key)
	i, _ := find(o.chunks[c], key)
	if i == len(o.chunks[c]) {
		c, i = c+1, 0
	}
	if c == len(o.chunks) {
		return pending{}, false
	}
	return o.chunks[c][i], true
}

// below returns the last write whose key is lower than key.
func (o *overlay) below(key string) (pending, bool) {
	if o == nil || len(o.chunks) == 0 {
		return pending{}, false
	}
	c := o.chunk(key)
	i, _ := find(o.chunks[c], key)
	if i == 0 {
		if c == 0 {
			return pending{}, false
		}
		c--
		i = len(o.chunks[c])
	}
	return o.chunks[c][i-1], true
}

// last returns the write with the highest key.
func (o *overlay) last() (pending, bool) {
	if o == nil || len(o.chunks) == 0 {
		return pending{}, false
	}
	chunk := o.chunks[len(o.chunks)-1]
	return chunk[len(chunk)-1], true
}
