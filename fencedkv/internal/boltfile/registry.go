package boltfile

import (
	"os"
	"slices"
	"sync"
)

// registry is what this process has open or is opening, by file and not by
// path: flock(2) would make a second Open in this process wait for the first.
var registry struct {
	sync.Mutex
	claims []*claim
}

type claim struct {
	info os.FileInfo
	path string
}

// claimFile reserves the file for one Open of this process, until free.
func claimFile(info os.FileInfo, path string) (*claim, error) {
	registry.Lock()
	defer registry.Unlock()
	for _, c := range registry.claims {
		if os.SameFile(c.info, info) {
			return nil, &InUseError{Path: path, ThisProcess: true, OpenAs: c.path}
		}
	}
	c := &claim{info, path}
	registry.claims = append(registry.claims, c)
	return c, nil
}

func (c *claim) free() {
	registry.Lock()
	defer registry.Unlock()
	registry.claims = slices.DeleteFunc(registry.claims, func(x *claim) bool { return x == c })
}
