package device_test

import (
	"errors"
	"fmt"
	"time"
)

// history is what a store may hold, after what its callers were told.
type history struct {
	worlds []world // that were acknowledged, in order
	maybe  world   // that of a write whose outcome is unknown, nil if there is none
	saw    bool    // a reader saw that one
}

func (h *history) last() world { return h.worlds[len(h.worlds)-1] }

// learn takes what the caller of a step was told.
func (h *history) learn(s step, told string) {
	switch told {
	case applied:
		h.worlds = append(h.worlds, h.last().after(s))
	case unknown:
		h.maybe = h.last().after(s)
	}
}

// admits reports why a store must not hold w.
func (h *history) admits(w world) error {
	got := w.String()
	if h.maybe != nil && got == h.maybe.String() || !h.saw && got == h.last().String() {
		return nil
	}
	err := fmt.Errorf("it holds\n\t%v\nand what was acknowledged is\n\t%v", w, h.last())
	if h.maybe != nil {
		err = fmt.Errorf("%w\nand with the write whose outcome is unknown\n\t%v\nwhich a reader has seen: %v", err, h.maybe, h.saw)
	}
	return err
}

// reader reads beside the steps.
type reader struct {
	end, ended chan struct{}
	seen       map[string][]view // of a resource, as they followed each other
	err        error
}

// view is what a reader saw of a resource.
type view struct{ text, end string }

func (v view) isOf(c content) bool { return c.before(v.end) == v.text }

func startReader(s subject) *reader {
	r := &reader{end: make(chan struct{}), ended: make(chan struct{}), seen: map[string][]view{}}
	go func() {
		defer close(r.ended)
		tick := time.NewTicker(time.Millisecond) // the steps need the processor too
		defer tick.Stop()
		for n := 0; ; n++ {
			end := largeKeys
			if n%8 == 0 {
				end = ""
			}
			for _, name := range resources {
				select {
				case <-r.end:
					return
				case <-tick.C:
				}
				c, err := s.read(name, end)
				if err != nil {
					r.err = err
					return
				}
				v, seen := view{c.before(end), end}, r.seen[name]
				if len(seen) == 0 || seen[len(seen)-1] != v {
					r.seen[name] = append(seen, v)
				}
			}
		}
	}()
	return r
}

// stop ends the reader and checks what it saw: worlds that were acknowledged, in
// order, and at last perhaps the one whose outcome is unknown.
func (r *reader) stop(h *history) error {
	close(r.end)
	<-r.ended
	for name, seen := range r.seen {
		at := 0
		for _, v := range seen {
			for at < len(h.worlds) && !v.isOf(h.worlds[at][name]) {
				at++
			}
			if at < len(h.worlds) {
				continue
			}
			if h.maybe == nil || !v.isOf(h.maybe[name]) {
				return errors.Join(r.err, fmt.Errorf("%s was read with\n\t%s\nwhich never was, or was before what was read earlier", name, v.text))
			}
			h.saw = true
		}
	}
	return r.err
}
