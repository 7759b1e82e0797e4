package zklock

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/locks"
)

const (
	entryBegin = "_c_"
	entryEnd   = "-lock-"
	idLength   = 26 // of rand.Text

	// Sequence numbers are signed and have 32 bits.
	warnSequence = 1 << 30
	// The distance to the wrap is for attempts that are under way, and for
	// callers that do not give up.
	maxSequence = 1<<31 - 1<<20
)

// newID is the id of one attempt, unique for ever.
func newID() string { return rand.Text() }

// entryPrefix is what the server completes with a sequence number.
func entryPrefix(id string) string { return entryBegin + id + entryEnd }

// parseEntry reads the name of a child of a lock node. It is false for
// children that this package did not make.
func parseEntry(child string) (id string, seq int32, ok bool) {
	rest, ok := strings.CutPrefix(child, entryBegin)
	if !ok || len(rest) < idLength+len(entryEnd)+10 {
		return "", 0, false
	}
	id, rest = rest[:idLength], rest[idLength:]
	if strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", 0, false
	}
	number, ok := strings.CutPrefix(rest, entryEnd)
	if !ok || number[0] == '+' {
		return "", 0, false
	}
	n, err := strconv.ParseInt(number, 10, 32)
	return id, int32(n), err == nil
}

// standing is where an attempt is in the queue of its lock.
type standing struct {
	exists bool   // its own entry is there
	before string // the entry just before it; empty if it is the lowest
}

// stand finds the place of the attempt with that id. A negative number comes
// from a numbering that has wrapped; its owner withdraws it, so that it counts
// neither as a holder nor as a waiter.
func stand(children []string, id string) standing {
	own := int32(-1)
	for _, child := range children {
		if other, seq, ok := parseEntry(child); ok && other == id {
			own = seq
		}
	}
	if own < 0 {
		return standing{}
	}
	s := standing{exists: true}
	highest := int32(-1)
	for _, child := range children {
		if _, seq, ok := parseEntry(child); ok && highest < seq && seq < own {
			highest, s.before = seq, child
		}
	}
	return s
}

// findEntry returns the child with that id, or "".
func findEntry(children []string, id string) string {
	for _, child := range children {
		if other, _, ok := parseEntry(child); ok && other == id {
			return child
		}
	}
	return ""
}

// taken reports whether somebody has the lock or waits for it.
func taken(children []string) bool {
	for _, child := range children {
		if _, seq, ok := parseEntry(child); ok && seq >= 0 {
			return true
		}
	}
	return false
}

// nextSequence is the number that the next entry below a node will get, modulo
// 2^31. A server numbers by the count of creations, and shows twice that less
// the number of children as the node's cversion.
func nextSequence(lock *zk.Stat) int64 {
	return int64((uint32(lock.Cversion) + uint32(lock.NumChildren)) / 2)
}

// checkSequence refuses what is too close to the wrap.
func checkSequence(path string, seq int64) error {
	if seq >= 0 && seq < maxSequence {
		return nil
	}
	return unsupported("the sequence numbers of %s are used up (%d); delete the node while nobody uses the lock", path, seq)
}

func unsupported(format string, args ...any) error {
	return &locks.Error{Op: "acquire", Kind: locks.ErrUnsupported, Err: fmt.Errorf(format, args...)}
}

// escapeName makes a lock name a node name, each name another one.
func escapeName(name string) string {
	const upperHex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9',
			c == '_' || c == ':' || c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}

// numbering is the identity of a node for a Lineage.
func numbering(path string, stat *zk.Stat) string {
	return fmt.Sprintf("%s@%x.%d", path, stat.Czxid, stat.Ctime)
}
