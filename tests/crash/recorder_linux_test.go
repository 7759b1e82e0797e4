package crash_test

import (
	"bytes"
	"context"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// notesName is the file to which a process on the file system writes what it
// tells, so that this stands in the record in its place.
const notesName = "notes"

// recorder keeps the changes that a process makes, in order.
type recorder struct {
	mu      sync.Mutex
	changes []change
	fate    func(change) fate // nil: happens
	dead    bool
}

// fate is what becomes of a change that is about to be made.
type fate int

const (
	happens fate = iota
	fails        // the device says so
	dies         // the process does, before the change
)

// do makes a change and records it, or does neither.
func (r *recorder) do(c change, make func() syscall.Errno) syscall.Errno {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return syscall.EIO
	}
	if r.fate != nil {
		switch r.fate(c) {
		case fails:
			if c.kind == synced {
				c.kind = syncFailed
				r.changes = append(r.changes, c)
			}
			return syscall.EIO
		case dies:
			r.dead = true
			return syscall.EIO
		}
	}
	errno := make()
	if errno == 0 {
		r.changes = append(r.changes, c)
	}
	return errno
}

// take returns what was recorded, and records for another process.
func (r *recorder) take(next func(change) fate) []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.changes
	r.changes, r.dead, r.fate = nil, false, next
	return taken
}

// node is a file or the directory of a pass-through file system.
type node struct {
	fs.LoopbackNode
	recorder *recorder
}

// handle is an open file. It hides what else go-fuse's can do, above all to let
// the kernel write past the recorder.
type handle struct {
	inner    *fs.LoopbackFile
	recorder *recorder
	file     inode
	notes    bool
}

// directory is an open directory.
type directory struct {
	fs.FileHandle
	recorder *recorder
}

var (
	_ fs.NodeWrapChilder    = (*node)(nil)
	_ fs.NodeOpener         = (*node)(nil)
	_ fs.NodeCreater        = (*node)(nil)
	_ fs.NodeSetattrer      = (*node)(nil)
	_ fs.NodeLinker         = (*node)(nil)
	_ fs.NodeUnlinker       = (*node)(nil)
	_ fs.NodeRenamer        = (*node)(nil)
	_ fs.NodeOpendirHandler = (*node)(nil)
	_ fs.FileReader         = (*handle)(nil)
	_ fs.FileWriter         = (*handle)(nil)
	_ fs.FileFsyncer        = (*handle)(nil)
	_ fs.FileReleaser       = (*handle)(nil)
	_ fs.FileGetattrer      = (*handle)(nil)
	_ fs.FileSetattrer      = (*handle)(nil)
	_ fs.FileFsyncdirer     = (*directory)(nil)
	_ fs.FileReaddirenter   = (*directory)(nil)
)

func (n *node) WrapChild(context.Context, fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: fs.LoopbackNode{RootData: n.RootData}, recorder: n.recorder}
}

func inodeOf(n *fs.Inode) inode {
	return inode{n.StableAttr().Ino, n.StableAttr().Gen}
}

// handle wraps an open file. A line of the notes must not be torn at a page of
// the kernel's cache.
func (n *node) handle(of *fs.Inode, name string, fh fs.FileHandle) (h fs.FileHandle, flags uint32) {
	if name == notesName {
		flags = fuse.FOPEN_DIRECT_IO
	}
	return &handle{inner: fh.(*fs.LoopbackFile), recorder: n.recorder, file: inodeOf(of), notes: name == notesName}, flags
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	fh, _, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	name := n.Path(nil)
	if name != notesName {
		c := change{kind: opened, name: name, file: inodeOf(n.EmbeddedInode())}
		if errno := n.recorder.do(c, func() syscall.Errno { return 0 }); errno != 0 {
			return nil, 0, errno
		}
	}
	h, flags := n.handle(n.EmbeddedInode(), name, fh)
	return h, flags, 0
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	n.recorder.mu.Lock()
	defer n.recorder.mu.Unlock()
	if n.recorder.dead {
		return nil, nil, 0, syscall.EIO
	}
	child, fh, _, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	if name != notesName {
		n.recorder.changes = append(n.recorder.changes, change{kind: linked, name: name, file: inodeOf(child)})
	}
	h, flags := n.handle(child, name, fh)
	return child, h, flags, 0
}

func (n *node) Setattr(ctx context.Context, fh fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	set := func() syscall.Errno { return n.LoopbackNode.Setattr(ctx, fh, in, out) }
	size, ok := in.GetSize()
	if !ok || n.Path(nil) == notesName {
		return set()
	}
	return n.recorder.do(change{kind: truncated, file: inodeOf(n.EmbeddedInode()), size: int64(size)}, set)
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	c := change{kind: linked, name: name, file: inodeOf(target.EmbeddedInode())}
	errno = n.recorder.do(c, func() syscall.Errno {
		child, errno = n.LoopbackNode.Link(ctx, target, name, out)
		return errno
	})
	return child, errno
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.recorder.do(change{kind: unlinked, name: name}, func() syscall.Errno { return n.LoopbackNode.Unlink(ctx, name) })
}

func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	c := change{kind: renamed, name: name, to: to}
	if child := n.GetChild(name); child != nil {
		c.file = inodeOf(child)
	}
	return n.recorder.do(c, func() syscall.Errno { return n.LoopbackNode.Rename(ctx, name, parent, to, flags) })
}

func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	fh, _, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	return &directory{fh, n.recorder}, 0, errno
}

func (d *directory) Fsyncdir(context.Context, uint32) syscall.Errno {
	return d.recorder.do(change{kind: dirSynced}, func() syscall.Errno { return 0 })
}

func (d *directory) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	return d.FileHandle.(fs.FileReaddirenter).Readdirent(ctx)
}

func (d *directory) Releasedir(ctx context.Context, flags uint32) {
	d.FileHandle.(fs.FileReleasedirer).Releasedir(ctx, flags)
}

func (h *handle) Read(ctx context.Context, to []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	return h.inner.Read(ctx, to, offset)
}

func (h *handle) Write(ctx context.Context, data []byte, offset int64) (written uint32, errno syscall.Errno) {
	c := change{kind: wrote, file: h.file, offset: offset, data: bytes.Clone(data)}
	if h.notes {
		c = change{kind: told, note: string(data)}
	}
	errno = h.recorder.do(c, func() syscall.Errno {
		written, errno = h.inner.Write(ctx, data, offset)
		return errno
	})
	return written, errno
}

// Fsync does what the record needs: what the test's own machine keeps is not
// asked here.
func (h *handle) Fsync(context.Context, uint32) syscall.Errno {
	return h.recorder.do(change{kind: synced, file: h.file}, func() syscall.Errno { return 0 })
}

func (h *handle) Release(ctx context.Context) syscall.Errno { return h.inner.Release(ctx) }

func (h *handle) Getattr(ctx context.Context, out *fuse.AttrOut) syscall.Errno {
	return h.inner.Getattr(ctx, out)
}

func (h *handle) Setattr(ctx context.Context, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return h.inner.Setattr(ctx, in, out)
}
