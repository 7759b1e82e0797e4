package crash_test

import (
	"fmt"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// What a child tells about its calls.
const (
	begun  = "begun"        // a write with this token is about to be called
	acked  = "acknowledged" // it has returned nil
	value  = "value"        // a read has returned this value
	marked = "mark"         // a read, or a refusal, has named this mark
)

// note is one line of what a child has told. No two writes of a store have the
// same. A raise has the key "-".
type note struct {
	what          string
	resource, key string
	n             uint64 // of the writes of one writer, which rise
	seq           uint64 // of the token
	size          int    // of the value
}

func (n note) as(what string) note {
	n.what = what
	return n
}

func (n note) String() string {
	return fmt.Sprintf("%s %s %s %d %d %d\n", n.what, n.resource, n.key, n.n, n.seq, n.size)
}

func parseNote(line string) (n note, err error) {
	_, err = fmt.Sscan(line, &n.what, &n.resource, &n.key, &n.n, &n.seq, &n.size)
	return n, err
}

// content is the value of a write: all that is said of it, and a filler that
// follows from it, so that a damaged value is not taken for another one.
func (n note) content() string {
	return fmt.Sprintf("%d %d %d ", n.n, n.seq, n.size) + strings.Repeat(string(rune('a'+n.n%26)), n.size)
}

// readNote tells which write a value is of.
func readNote(resource, key, text string) (note, error) {
	n := note{what: value, resource: resource, key: key}
	if _, err := fmt.Sscan(text, &n.n, &n.seq, &n.size); err != nil || n.content() != text {
		return n, fmt.Errorf("the value of %s %s is of no write: %.80q", resource, key, text)
	}
	return n, nil
}

// named is a token as a lock service gives it: one number, one holder.
func named(seq uint64) fence.Token {
	return fence.Token{Lineage: "l", Seq: seq, Holder: fmt.Sprint("holder-", seq)}
}
