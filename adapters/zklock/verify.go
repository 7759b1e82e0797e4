package zklock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

var _ fence.Verifier = (*Locker)(nil)

// holding is what a server says about a lock, after a sync with the leader.
type holding struct {
	lineage string      // of the lock's tokens; empty if its node is not there
	current fence.Token // zero if the lock is free
}

// Verify implements fence.Verifier: nil means that the lock that is named like
// resource is held by the grant of t. It syncs with the leader, lists the lock
// node and reads the lowest entry. It waits for Options.RequestTimeout at most,
// and needs no permission but to read.
func (l *Locker) Verify(ctx context.Context, resource string, t fence.Token) error {
	no := &fence.UnverifiedError{Resource: resource, Offered: t}
	because := func(reason, err error) error {
		no.Reason, no.Err = reason, err
		return no
	}
	end, err := l.group.Begin("verify", resource)
	if err != nil {
		return because(fence.ErrNoAnswer, err)
	}
	defer end()
	if !l.mayNumber(resource, t.Lineage) {
		return because(fence.ErrNoVerifier, nil)
	}
	work, cancel := l.within(ctx, true)
	defer cancel()
	h, err := l.holding(work, resource)
	switch {
	case err != nil && l.open.Err() != nil:
		return because(fence.ErrNoAnswer, &locks.Error{Op: "verify", Name: resource, Kind: locks.ErrClosed})
	case err != nil:
		return because(fence.ErrNoAnswer, locks.Unanswered(ctx, resource, translate("verify", resource, err)))
	case h.lineage == "":
		return because(fence.ErrNoVerifier, errors.New("its node is not there, so the lock has no numbering"))
	case h.lineage != t.Lineage:
		return because(fence.ErrNoVerifier, fmt.Errorf("the lineage of the lock's tokens is now %q", h.lineage))
	case h.current != t:
		no.Current = h.current
		return because(fence.ErrNotGranted, nil)
	}
	return nil
}

// kind is the first part of a lineage.
func (l *Locker) kind() string {
	if l.opts.useZxid() {
		return "zkzxid"
	}
	return "zkseq"
}

// mayNumber reports whether the lineage is, as far as its text tells, one of the
// lock: which one of them is known to the server only. The end of one that is cut
// is a checksum.
func (l *Locker) mayNumber(name, lineage string) bool {
	lock := l.root + "/" + escapeName(name) + "@"
	want := l.kind() + ":" + lock
	if len(lineage) == fence.MaxLineage {
		cut := locks.Lineage(l.kind(), lock+strings.Repeat("0", fence.MaxLineage))
		want = want[:min(len(want), strings.LastIndexByte(cut, '#'))]
	}
	return strings.HasPrefix(lineage, want)
}

// holding asks for the present state of a lock, again while no server answers
// and ctx lasts.
func (l *Locker) holding(ctx context.Context, name string) (h holding, err error) {
	for {
		h, err = l.ask(ctx, name)
		_, ours := errors.AsType[*locks.Error](err)
		if err == nil || ours || refused(err) || !sleep(ctx, 5*time.Millisecond) {
			return h, err
		}
	}
}

func (l *Locker) ask(ctx context.Context, name string) (holding, error) {
	s, err := l.join()
	if err != nil {
		return holding{}, err
	}
	defer s.leave()
	var h holding
	err = s.do(ctx, func(c *zk.Conn) (err error) {
		h, err = l.read(c, l.root+"/"+escapeName(name))
		return err
	})
	if err != nil {
		return holding{}, err // and h may be written to yet
	}
	return h, nil
}

// read returns errChanged if the holder's entry went in between.
func (l *Locker) read(c *zk.Conn, lock string) (h holding, err error) {
	if _, err := c.Sync(lock); err != nil {
		return h, err
	}
	children, numbered, err := c.Children(lock)
	there := err == nil
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return h, err
	}
	if l.opts.useZxid() {
		if there, numbered, err = c.Exists(l.root); err != nil {
			return h, err
		}
	}
	if !there {
		return h, nil
	}
	h.lineage = locks.Lineage(l.kind(), numbering(lock, numbered))
	child, seq := lowest(children)
	if child == "" {
		return h, nil
	}
	// An entry that is the lowest stays it for as long as it is there.
	data, entry, err := c.Get(lock + "/" + child)
	if errors.Is(err, zk.ErrNoNode) {
		return h, errChanged
	}
	if err != nil {
		return h, err
	}
	h.current = fence.Token{Lineage: h.lineage, Seq: uint64(seq) + 1, Holder: string(data)}
	if l.opts.useZxid() {
		h.current.Seq = uint64(entry.Czxid)
	}
	return h, nil
}

// lowest returns the entry that holds the lock; see stand.
func lowest(children []string) (child string, number int32) {
	for _, other := range children {
		if _, seq, ok := parseEntry(other); ok && seq >= 0 && (child == "" || seq < number) {
			child, number = other, seq
		}
	}
	return child, number
}
