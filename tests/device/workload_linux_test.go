package device_test

import (
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"sync"
)

// step is one call of a store.
type step struct {
	call   string // which one
	claims []claim
	writes []write
	want   string // what it is told if nothing is in its way
}

// Calls.
const (
	raise  = "Raise"
	put    = "Put"
	remove = "Delete"
	update = "Update"
	multi  = "Store.Update"
)

// What a caller is told.
const (
	applied  = "nil"
	refused  = "a refusal"
	ownError = "the error of its function"
	noRoom   = "no room"
	lost     = "ErrFailed"
	unknown  = "ErrUnknownOutcome"
)

// claim is a token offered to a resource.
type claim struct {
	resource string
	seq      uint64
	holder   string
}

// write is of one key.
type write struct {
	resource, key, value string
	remove               bool
}

var resources = []string{"a", "b"}

// large is the size of values of which a few let the file grow. Their keys come
// last, from largeKeys on.
const (
	large     = 300_000
	largeKeys = "z"
)

// sessions is the workload: the first session creates the store, the second one
// opens it. The file grows at the first step, and twice for large values; what
// is deleted makes room that is used again.
var sessions = sync.OnceValue(func() [][]step {
	n := 0
	value := func(size int) string {
		n++
		head := fmt.Sprintf("value %d ", n)
		return head + strings.Repeat(string(rune('a'+n%26)), max(0, size-len(head)))
	}
	one := func(call, r string, seq uint64, writes ...write) step {
		return step{call: call, claims: []claim{{r, seq, ""}}, writes: writes, want: applied}
	}
	to := func(r, key string, size int) write { return write{resource: r, key: key, value: value(size)} }
	both := func(a, b uint64, writes ...write) step {
		return step{multi, []claim{{"a", a, ""}, {"b", b, ""}}, writes, applied}
	}
	ownEnd := func(s step) step {
		s.want = ownError
		return s
	}
	return [][]step{{
		one(raise, "a", 2),
		one(put, "a", 2, to("a", "k", 10)),
		one(put, "b", 1, to("b", "k", 3000)),
		one(put, "a", 1, to("a", "k", 10)),
		one(put, "a", 2, to("a", "z-large", large)),
		one(update, "a", 3, to("a", "k", 10), to("a", "l", 5000)),
		one(raise, "a", 2),
		one(put, "b", 1, to("b", "z-large", large)),
		both(3, 2, to("a", "m", 100), to("b", "m", 100)),
		both(4, 1, to("a", "m", 100), to("b", "m", 100)),
		one(remove, "a", 4, write{resource: "a", key: "k", remove: true}),
		one(put, "a", 4, to("a", "z-more", large)),
		one(remove, "a", 4, write{resource: "a", key: "z-large", remove: true}),
	}, {
		one(put, "a", 4, to("a", "k", 10)),
		step{put, []claim{{"a", 4, "somebody else"}}, []write{to("a", "k", 10)}, applied},
		one(put, "b", 5, to("b", "z-larger", large)),
		ownEnd(one(update, "b", 6, to("b", "k", 10))),
		both(7, 7, to("a", "m", 100), write{resource: "b", key: "z-large", remove: true}, to("b", "m", 100)),
		one(raise, "b", 8),
	}}
})

// world is all that a store holds.
type world map[string]content

// content is what a resource holds.
type content struct {
	seq    uint64 // of the mark
	holder string
	values map[string]string
}

func newWorld() world {
	w := world{}
	for _, r := range resources {
		w[r] = content{values: map[string]string{}}
	}
	return w
}

// after is the world that a step leaves if it is applied.
func (w world) after(s step) world {
	next := maps.Clone(w)
	for _, c := range s.claims {
		of := next[c.resource]
		next[c.resource] = content{max(of.seq, c.seq), c.token().Holder, maps.Clone(of.values)}
	}
	for _, wr := range s.writes {
		if wr.remove {
			delete(next[wr.resource].values, wr.key)
		} else {
			next[wr.resource].values[wr.key] = wr.value
		}
	}
	return next
}

// refuses reports whether the rule refuses a step: a lower token, or one that
// somebody else has had.
func (w world) refuses(s step) bool {
	for _, c := range s.claims {
		if mark := w[c.resource]; c.seq < mark.seq || c.seq == mark.seq && c.token().Holder != mark.holder {
			return true
		}
	}
	return false
}

func (c content) String() string { return c.before("") }

// before tells contents apart, in their keys before end, without showing them
// whole. "" is no end.
func (c content) before(end string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "mark %d of %s", c.seq, c.holder)
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		if end != "" && key >= end {
			break
		}
		v := c.values[key]
		fmt.Fprintf(&b, ", %s %.8q %d %08x", key, v, len(v), crc32.ChecksumIEEE([]byte(v)))
	}
	return b.String()
}

func (w world) String() string {
	var b strings.Builder
	for _, r := range resources {
		fmt.Fprintf(&b, "%s: %v; ", r, w[r])
	}
	return b.String()
}
