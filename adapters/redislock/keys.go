package redislock

import (
	"fmt"
	"strings"

	"github.com/fencedkv/fencedkv/locks"
)

// keys are the names on the server of one lock: see the package comment.
type keys struct{ base string }

// channelOf begins the channels of all Lockers with this prefix; a Locker's own
// adds its name.
func channelOf(prefix string) string { return prefix + ":wake:" }

func newKeys(prefix, name string) keys {
	return keys{prefix + ":{" + encode(name) + "}:"}
}

func (k keys) lock() string            { return k.base + "lock" }
func (k keys) last() string            { return k.base + "last" }
func (k keys) queue() string           { return k.base + "queue" }
func (k keys) alive() string           { return k.base + "alive" }
func (k keys) gone(id string) string   { return k.base + "gone:" + id }
func (k keys) shared() []string        { return []string{k.lock(), k.last(), k.queue(), k.alive()} }
func (k keys) with(id string) []string { return append(k.shared(), k.gone(id)) }

// lineage names the numbering of one lock. A colon of the prefix is encoded, so
// that "a:b" with lock "c" is not taken for "a" with lock "b:c".
func lineage(prefix, name string) string {
	return locks.Lineage("redis", strings.ReplaceAll(prefix, ":", "%3A")+":"+name)
}

// encode writes every byte outside of the plain ones as %XX. The result has no
// brace, so it is a hash tag of its own whatever the name.
func encode(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func plain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._/:-", r)
}
