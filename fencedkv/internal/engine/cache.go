package engine

import (
	"strings"
	"sync"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// maxCached is how many marks are kept in memory. A mark and its names take
// less than a kilobyte.
const maxCached = 1 << 14

// markCache holds durable marks of resources that were written or asked for of
// late. It refuses and never admits: what it lets pass is decided by the
// committer on the file.
//
// Marks come in any order, from readers of old snapshots too, so each is known
// by the transaction that it was read in. One that is older than what is there,
// or than what was dropped, is not taken: a mark that was replaced cannot come
// back.
type markCache struct {
	mu    sync.RWMutex
	marks map[string]cachedMark
	floor int // the newest transaction of what was dropped
}

type cachedMark struct {
	mark fence.Mark
	tx   int
}

func (c *markCache) get(resource string) (fence.Mark, bool) {
	c.mu.RLock()
	m, found := c.marks[resource]
	c.mu.RUnlock()
	return m.mark, found
}

// put keeps a mark as the durable transaction tx shows it.
func (c *markCache) put(resource string, m fence.Mark, tx int) {
	if m.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	have, found := c.marks[resource]
	if tx < c.floor || found && tx < have.tx {
		return
	}
	if !found {
		if c.marks == nil {
			c.marks = make(map[string]cachedMark)
		}
		for other, m := range c.marks {
			if len(c.marks) < maxCached {
				break
			}
			c.drop(other, m.tx)
		}
		resource = strings.Clone(resource) // it may be part of something large
	}
	c.marks[resource] = cachedMark{m, tx}
}

// drop forgets a mark that is not to come back from a transaction before tx.
// The caller holds c.mu.
func (c *markCache) drop(resource string, tx int) {
	delete(c.marks, resource)
	c.floor = max(c.floor, tx)
}
