package locks

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// MaxName is the longest lock name, in bytes.
const MaxName = 4096

// CheckName returns an error over ErrBadName if name is empty or longer than
// MaxName bytes. Every other string of bytes is a lock name.
func CheckName(name string) error {
	switch {
	case name == "":
		return &Error{Op: "check name", Kind: ErrBadName, Err: fmt.Errorf("it is empty; give 1 to %d bytes", MaxName)}
	case len(name) > MaxName:
		return &Error{Op: "check name", Name: name[:64] + "...", Kind: ErrBadName,
			Err: fmt.Errorf("it has %d bytes; give 1 to %d", len(name), MaxName)}
	}
	return nil
}

// Lineage returns "kind:identity", the lineage of a token whose numbering is
// identified by identity within a kind of service. A lineage that would reach
// fence.MaxLineage is cut and completed by the SHA-256 of identity. Only a cut
// one has that length, so that two identities never share a lineage.
func Lineage(kind, identity string) string {
	full := kind + ":" + identity
	if len(full) < fence.MaxLineage {
		return full
	}
	sum := sha256.Sum256([]byte(identity))
	tail := "#sha256:" + hex.EncodeToString(sum[:])
	return full[:fence.MaxLineage-len(tail)] + tail
}

// NewHolder returns an id that is unique per call, for the Holder of a grant:
// host name, process id and 128 random bits, such as "web-3.4711.K7Q...". The
// first two are for the person who reads a refusal; only the last one counts.
func NewHolder() string {
	return fmt.Sprintf("%s.%d.%s", host(), os.Getpid(), rand.Text())
}

// host is the name of this machine, as far as it can stand in a holder.
var host = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown"
	}
	name = strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 64)]
})
