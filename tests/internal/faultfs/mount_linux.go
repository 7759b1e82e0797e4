package faultfs

import (
	"fmt"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// MaxWrite is up to how many bytes a write stays one write on its way through
// the kernel.
const MaxWrite = 512 << 10

// Mount serves the files of the directory backing at mount. It needs the right
// to mount and /dev/fuse.
func Mount(backing, mount string, r *Recorder) (*fuse.Server, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(backing, &st); err != nil {
		return nil, fmt.Errorf("stat %s: %w", backing, err)
	}
	root := &node{
		LoopbackNode: fs.LoopbackNode{RootData: &fs.LoopbackRoot{Path: backing, Dev: st.Dev}},
		recorder:     r,
	}
	forOneWriter := time.Minute // what the kernel remembers is right: all changes come through it
	server, err := fs.Mount(mount, root, &fs.Options{EntryTimeout: &forOneWriter, AttrTimeout: &forOneWriter, MountOptions: fuse.MountOptions{
		DirectMountStrict: true, FsName: "faultfs", Name: "faultfs", DisableXAttrs: true, MaxWrite: MaxWrite,
		ExplicitDataCacheControl: true,
	}})
	if err != nil {
		return nil, fmt.Errorf("mount at %s: %w", mount, err)
	}
	return server, nil
}
