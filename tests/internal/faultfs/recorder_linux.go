package faultfs

import (
	"sync"
	"syscall"
)

// Rules are functions that hear of changes; each may be nil.
type Rules struct {
	// Wait may take its time before a change is made, whatever becomes of it.
	Wait func(Change)
	// Decide says what becomes of a change that is about to be made. It is
	// called for one change at a time, like Did, and blocks the others.
	Decide func(Change) Fate
	// Did hears of changes that were made, and of syncs that failed.
	Did func(Change)
}

// Fate is what becomes of a change. The zero Fate lets it happen.
type Fate struct {
	Errno syscall.Errno // it fails
	Half  bool          // of a write only the first half is made, and the writer is told so
	Ends  bool          // it and all later ones fail
}

// Recorder keeps the order of the changes of one file system.
type Recorder struct {
	mu    sync.Mutex
	rules Rules
	dead  bool
}

// Set gives the recorder new rules, under which what has ended goes on.
func (r *Recorder) Set(rules Rules) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules, r.dead = rules, false
}

// do makes a change and tells of it, or does neither.
func (r *Recorder) do(c Change, make func(Change) syscall.Errno) syscall.Errno {
	r.mu.Lock()
	wait := r.rules.Wait
	r.mu.Unlock()
	if wait != nil {
		wait(c)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return syscall.EIO
	}
	var fate Fate
	if r.rules.Decide != nil {
		fate = r.rules.Decide(c)
	}
	r.dead = fate.Ends
	errno := fate.Errno
	switch {
	case fate.Ends && errno == 0:
		errno = syscall.EIO
	case errno != 0 && c.Kind == Synced && !fate.Ends:
		c.Kind = SyncFailed
		r.did(c)
	case errno == 0:
		if fate.Half {
			c.Data = c.Data[:len(c.Data)/2]
		}
		if errno = make(c); errno == 0 {
			r.did(c)
		}
	}
	return errno
}

func (r *Recorder) did(c Change) {
	if r.rules.Did != nil {
		r.rules.Did(c)
	}
}
