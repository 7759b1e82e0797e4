package faultfs

import (
	"bytes"
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// NotesName is the file to which a process on the file system writes what it
// tells, so that this stands in the record in its place.
const NotesName = "notes"

// node is a file or the directory of a pass-through file system.
type node struct {
	fs.LoopbackNode
	recorder *Recorder
}

// handle is an open file. It hides what else go-fuse's can do, above all to let
// the kernel write past the recorder.
type handle struct {
	inner    *fs.LoopbackFile
	recorder *Recorder
	file     Inode
	notes    bool
}

// directory is an open directory.
type directory struct {
	fs.FileHandle
	recorder *Recorder
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

func inodeOf(n *fs.Inode) Inode {
	return Inode{n.StableAttr().Ino, n.StableAttr().Gen}
}

// handle wraps an open file. A line of the notes must not be torn at a page of
// the kernel's cache; of other files the cache outlives their descriptors, as it
// does on a disk.
func (n *node) handle(of *fs.Inode, name string, fh fs.FileHandle) (h fs.FileHandle, flags uint32) {
	flags = fuse.FOPEN_KEEP_CACHE
	if name == NotesName {
		flags = fuse.FOPEN_DIRECT_IO
	}
	return &handle{inner: fh.(*fs.LoopbackFile), recorder: n.recorder, file: inodeOf(of), notes: name == NotesName}, flags
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	fh, _, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	name := n.Path(nil)
	if name != NotesName {
		c := Change{Kind: Opened, Name: name, File: inodeOf(n.EmbeddedInode())}
		if errno := n.recorder.do(c, func(Change) syscall.Errno { return 0 }); errno != 0 {
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
	if name != NotesName {
		n.recorder.did(Change{Kind: Linked, Name: name, File: inodeOf(child)})
	}
	h, flags := n.handle(child, name, fh)
	return child, h, flags, 0
}

func (n *node) Setattr(ctx context.Context, fh fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	set := func(Change) syscall.Errno { return n.LoopbackNode.Setattr(ctx, fh, in, out) }
	size, ok := in.GetSize()
	if !ok || n.Path(nil) == NotesName {
		return set(Change{})
	}
	return n.recorder.do(Change{Kind: Truncated, File: inodeOf(n.EmbeddedInode()), Size: int64(size)}, set)
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	c := Change{Kind: Linked, Name: name, File: inodeOf(target.EmbeddedInode())}
	errno = n.recorder.do(c, func(Change) syscall.Errno {
		child, errno = n.LoopbackNode.Link(ctx, target, name, out)
		return errno
	})
	return child, errno
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.recorder.do(Change{Kind: Unlinked, Name: name}, func(Change) syscall.Errno { return n.LoopbackNode.Unlink(ctx, name) })
}

func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	c := Change{Kind: Renamed, Name: name, To: to}
	if child := n.GetChild(name); child != nil {
		c.File = inodeOf(child)
	}
	return n.recorder.do(c, func(Change) syscall.Errno { return n.LoopbackNode.Rename(ctx, name, parent, to, flags) })
}

func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	fh, _, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	return &directory{fh, n.recorder}, 0, errno
}

func (d *directory) Fsyncdir(context.Context, uint32) syscall.Errno {
	return d.recorder.do(Change{Kind: DirSynced}, func(Change) syscall.Errno { return 0 })
}

func (d *directory) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	return d.FileHandle.(fs.FileReaddirenter).Readdirent(ctx)
}

func (d *directory) Releasedir(ctx context.Context, flags uint32) {
	d.FileHandle.(fs.FileReleasedirer).Releasedir(ctx, flags)
}

func (h *handle) Read(ctx context.Context, to []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	read, errno := h.inner.Read(ctx, to, offset)
	if errno != 0 {
		return nil, errno
	}
	data, status := read.Bytes(to) // a splice costs more
	return fuse.ReadResultData(data), syscall.Errno(status)
}

func (h *handle) Write(ctx context.Context, data []byte, offset int64) (written uint32, errno syscall.Errno) {
	c := Change{Kind: Wrote, File: h.file, Offset: offset, Data: bytes.Clone(data)}
	if h.notes {
		c = Change{Kind: Told, Note: string(data)}
	}
	errno = h.recorder.do(c, func(c Change) syscall.Errno {
		if !h.notes {
			data = c.Data
		}
		written, errno = h.inner.Write(ctx, data, offset)
		return errno
	})
	return written, errno
}

// Fsync does what the record needs: what the machine itself keeps is not
// asked here.
func (h *handle) Fsync(_ context.Context, flags uint32) syscall.Errno {
	const dataOnly = 1 // FUSE_FSYNC_FDATASYNC
	return h.recorder.do(Change{Kind: Synced, File: h.file, DataOnly: flags&dataOnly != 0}, func(Change) syscall.Errno { return 0 })
}

func (h *handle) Release(ctx context.Context) syscall.Errno { return h.inner.Release(ctx) }

func (h *handle) Getattr(ctx context.Context, out *fuse.AttrOut) syscall.Errno {
	return h.inner.Getattr(ctx, out)
}

func (h *handle) Setattr(ctx context.Context, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return h.inner.Setattr(ctx, in, out)
}
