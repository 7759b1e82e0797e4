package boltfile

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	bolt "go.etcd.io/bbolt"
)

// standsOn returns nil if tx stands on the last durable transaction or, unless it
// has to be exactly that one, on a later one. bbolt reads the meta pages anew each
// time: an older copy that was written over the file would be believed, with its
// marks.
func (f *File) standsOn(tx *bolt.Tx, last uint64, exactly bool) error {
	on := uint64(tx.ID())
	if tx.Writable() {
		on--
	}
	if on == last || on > last && !exactly {
		return nil
	}
	return f.writtenOver(on, last)
}

func (f *File) writtenOver(on, last uint64) *CorruptError {
	return &CorruptError{Path: f.path, Detail: fmt.Sprintf(
		"the file was written over while open: it holds transaction %d, and %d was the last one", on, last)}
}

// settled waits until the state that a reader sees is durable. bbolt shows a
// transaction once its meta page is written, which is before it is synced, and
// what was read and then lost in a power failure would have been read in vain.
//
// A transaction that is not durable when its commit has ended, or that is not the
// next one, is none of this File's: something newer was written over the file.
func (f *File) settled(tx *bolt.Tx) error {
	id := uint64(tx.ID())
	if id <= f.durable.Load() {
		return nil
	}
	f.mu.Lock()
	flight, broken := f.flight, f.broken
	f.mu.Unlock()
	if last := f.durable.Load(); broken == nil && flight != nil && id == last+1 {
		<-flight // the commit of this transaction
		f.mu.Lock()
		broken = f.broken
		f.mu.Unlock()
	}
	last := f.durable.Load()
	switch {
	case id <= last:
		return nil
	case broken != nil:
		return broken
	}
	over := f.writtenOver(id, last)
	f.breakdown(over)
	return over
}

// Intact returns nil if the file still holds the state that t is of, which
// transaction id made: its meta page is that of this transaction, or of a later one
// of this File. Else the file was written over, whose pages may be as sound as those
// that were there, and older; it is out of use from then on. Within Guard, and while
// the transaction is open.
//
// Whoever reads asks afterwards, because a copy is written from its beginning, where
// the meta pages are. It costs no more than to read a number.
func (f *File) Intact(t *Tree, id int) error {
	if on := t.in.txid(id); id <= on && on <= int(f.durable.Load())+1 { // one may be in flight
		return nil
	}
	m := t.in.meta(id) // not half of one that is just written
	on, last := int(m.txid), f.durable.Load()
	if m.usable() && id <= on && on <= int(last)+1 {
		return nil
	}
	over := f.writtenOver(uint64(on), last)
	f.breakdown(over)
	return over
}

// mayCommit returns nil if the file is in use and still holds the state that tx, a
// write transaction, stands on: what was decided on it is right.
func (f *File) mayCommit(tx *bolt.Tx) error {
	f.mu.Lock()
	broken := f.broken
	f.mu.Unlock()
	if broken != nil {
		return broken
	}
	err := Guard(f.path, func() error {
		in, root := pagesOf(f.path, tx)
		return f.Intact(&Tree{in: in, root: root}, tx.ID()-1)
	})
	f.latch(err)
	return err
}

// Intact is File.Intact of this state.
func (s *State) Intact() error { return s.file.Intact(&s.root, s.id) }

// txid is the transaction of the meta page at which transaction id was written.
func (p *pages) txid(id int) int {
	at := uint64(id&1)*p.size + headerSize + metaTxid
	return int(atomic.LoadUint64((*uint64)(unsafe.Pointer(&p.mem[at]))))
}

// meta returns the meta page at which transaction id was written. It may hold a
// later one, or be written to at this moment: it is invalid only if it stays so.
func (p *pages) meta(id int) (m meta) {
	for range 1000 {
		if m = parseMeta(p.mem[uint64(id&1)*p.size:]); m.usable() {
			break
		}
		runtime.Gosched()
	}
	return m
}
