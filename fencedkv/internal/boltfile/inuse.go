package boltfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Pages returns how many pages the state has, of all kinds.
func (s *State) Pages() uint64 { return s.root.in.count }

// CheckPages looks at how the pages of the state hang together: each is part of one
// tree, or of the free list, or free, and none is two of these. A page number that
// is wrong by one bit can lead to a page that is free and still holds what a sound
// page held before, and a page that is called free and is in use will be
// overwritten: nothing that reads records can tell.
//
// If leaves is false it reads the branches only, about one page in a hundred, the
// leaves that run over more than a page, and of the others none.
//
// The error is a *CorruptError, or ctx's.
func (s *State) CheckPages(ctx context.Context, leaves bool) error {
	return Guard(s.file.path, func() error {
		in := s.root.in
		m, err := metaOf(s.tx)
		if err != nil {
			return err
		}
		if on := in.meta(s.id); !on.usable() {
			return in.corrupt(uint64(s.id&1), "the meta page is invalid")
		}
		u := &inUse{ctx: ctx, in: in, leaves: leaves, seen: newPageSet(in.count), unread: newPageSet(in.count)}
		return u.check(&s.root, m)
	})
}

// metaOf returns the meta page that tx began with. A later commit may have replaced
// it in the file. bbolt has kept a copy, and a backup begins with it.
func metaOf(tx *bolt.Tx) (meta, error) {
	var first firstPage
	_, err := tx.WriteTo(&first)
	if m := parseMeta(first); m.usable() && int(m.txid) == tx.ID() {
		return m, nil
	}
	return meta{}, fmt.Errorf("fencedkv: bbolt does not tell the meta page of transaction %d: %w", tx.ID(), err)
}

// firstPage takes what is written to it first and no more.
type firstPage []byte

func (p *firstPage) Write(b []byte) (int, error) {
	*p = append([]byte(nil), b...)
	return 0, errEnough
}

var errEnough = errors.New("that is enough")

// inUse gathers which pages are in use.
type inUse struct {
	ctx    context.Context
	in     *pages
	leaves bool
	seen   pageSet
	unread pageSet // leaves
	n      uint64  // of seen
	read   int
}

// pageSet has a bit for each page.
type pageSet []uint64

func newPageSet(pages uint64) pageSet { return make(pageSet, pages/64+1) }

func (s pageSet) has(id uint64) bool { return s[id/64]&(1<<(id%64)) != 0 }

func (s pageSet) add(id uint64) { s[id/64] |= 1 << (id % 64) }

func (u *inUse) check(root *Tree, m meta) error {
	for id := range uint64(2) {
		if err := u.take(id, "a meta page"); err != nil {
			return err
		}
	}
	if err := u.freelist(m.freelist); err != nil {
		return err
	}
	if err := u.tree(root, true); err != nil {
		return err
	}
	return u.rest()
}

// rest looks at the pages that were not named: those that an unread leaf runs over.
func (u *inUse) rest() error {
	for id := uint64(2); id < u.in.count && u.n < u.in.count; id++ {
		if u.seen.has(id) {
			continue
		}
		n := uint64(1)
		if u.unread.has(id - 1) {
			p, err := u.in.page(id - 1)
			if err != nil {
				return err
			}
			n = uint64(len(p.b)) / u.in.size
		}
		if n == 1 {
			return u.in.corrupt(id, "it is neither in use nor free")
		}
		if err := u.takeAll(id, n-1, "part of a tree"); err != nil {
			return err
		}
	}
	return nil
}

// take notes that a page is in use, or free.
func (u *inUse) take(id uint64, as string) error {
	if id >= u.in.count {
		return u.in.corrupt(id, "it is named as %s, and the file has %d pages", as, u.in.count)
	}
	if u.seen.has(id) {
		return u.in.corrupt(id, "it is named as %s, and is free or in use elsewhere", as)
	}
	u.seen.add(id)
	u.n++
	return nil
}

func (u *inUse) takeAll(id uint64, n uint64, as string) error {
	for i := range n {
		if err := u.take(id+i, as); err != nil {
			return err
		}
	}
	return nil
}

// freelist takes the free list and what it calls free.
func (u *inUse) freelist(id uint64) error {
	if id >= u.in.count {
		return u.in.corrupt(id, "it is named as the free list, and the file has %d pages", u.in.count)
	}
	b := u.in.mem[id*u.in.size:]
	h := parseHeader(b)
	switch {
	case h.id != id || h.flags != freelistPage:
		return u.in.corrupt(id, "it should be the free list, says that it is page %d and is of type %#x", h.id, h.flags)
	case uint64(h.overflow) >= u.in.count-id:
		return u.in.corrupt(id, "it runs over %d more pages, past the last one", h.overflow)
	}
	if err := u.takeAll(id, uint64(h.overflow)+1, "the free list"); err != nil {
		return err
	}
	b = b[headerSize : (uint64(h.overflow)+1)*u.in.size]
	count := uint64(h.count)
	if count == 0xFFFF { // see checkFreelist
		count, b = binary.NativeEndian.Uint64(b), b[8:]
	}
	if count > uint64(len(b))/8 {
		return u.in.corrupt(id, "it counts %d pages and has no room for them", count)
	}
	for i := range count {
		if err := u.take(binary.NativeEndian.Uint64(b[i*8:]), "free"); err != nil {
			return err
		}
	}
	return nil
}

// tree takes the pages of a bucket and of the buckets in it.
func (u *inUse) tree(t *Tree, root bool) error {
	p, err := t.top()
	if err != nil {
		return err
	}
	return u.page(t, &p, root, 1)
}

// page takes a page that was found, and what it leads to. Nothing is entered
// twice, so it ends.
func (u *inUse) page(t *Tree, p *page, root bool, depth int) error {
	if u.read++; u.read%checkEvery == 0 && u.ctx.Err() != nil {
		return u.ctx.Err()
	}
	if depth > maxDepth {
		return u.in.circle(p.id)
	}
	if p.id != 0 { // an inline bucket is part of another page
		if err := u.takeAll(p.id, uint64(len(p.b))/u.in.size, "part of a tree"); err != nil {
			return err
		}
	}
	if err := u.in.whole(p); err != nil {
		return err
	}
	if p.leaf {
		return u.buckets(t, p)
	}
	above := place{page: *p}
	for above.i = range p.count {
		id := p.child(above.i)
		child, err := t.in.page(id)
		if err != nil {
			return err
		}
		if !above.encloses(&child) {
			return t.in.corrupt(id, "its keys are not those that page %d leads to it for", p.id)
		}
		if child.leaf && !u.leaves && !root {
			return u.siblings(p)
		}
		if err := u.page(t, &child, root, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// checkEvery is how many pages are read between two looks at the context.
const checkEvery = 256

// siblings takes the leaves below a branch by their numbers.
func (u *inUse) siblings(p *page) error {
	for i := range p.count {
		id := p.child(i)
		if err := u.take(id, "part of a tree"); err != nil {
			return err
		}
		u.unread.add(id)
	}
	return nil
}

// buckets takes the buckets of a leaf.
func (u *inUse) buckets(t *Tree, p *page) error {
	for i := range p.count {
		key, _, bucket, err := t.in.leafElement(p, i)
		if err != nil {
			return err
		}
		if !bucket {
			continue
		}
		b, _, err := t.Bucket(key)
		if err != nil {
			return err
		}
		if err := u.tree(&b, false); err != nil {
			return err
		}
	}
	return nil
}
