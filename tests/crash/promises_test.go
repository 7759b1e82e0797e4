package crash_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// promises is what a store must keep, after what its callers have been told.
type promises struct {
	cells map[cellName]*cell
	marks map[string]*mark
	floor map[note]uint64 // of writes that have begun: the mark at that moment
}

type cellName struct{ resource, key string }

// cell is one key. The keys of one writer are written in order of their n; the
// shared ones, by many at once, in order of the tokens.
type cell struct {
	writes map[note]bool // that have begun
	n, seq uint64        // the highest acknowledged or read
}

// mark is that of a resource: what is the least that it must be, and the most
// that it can be.
type mark struct{ least, most uint64 }

func newPromises() *promises {
	return &promises{cells: map[cellName]*cell{}, marks: map[string]*mark{}, floor: map[note]uint64{}}
}

func (p *promises) cell(n note) *cell {
	name := cellName{n.resource, n.key}
	if p.cells[name] == nil {
		p.cells[name] = &cell{writes: map[note]bool{}}
	}
	return p.cells[name]
}

// learn takes the next thing told. Its error is a promise that it breaks.
func (p *promises) learn(n note) error {
	m := p.marks[n.resource]
	if m == nil {
		m = &mark{}
		p.marks[n.resource] = m
	}
	switch n.what {
	case begun:
		m.most = max(m.most, n.seq)
		p.floor[n] = m.least
		if n.key != "-" {
			p.cell(n).writes[n] = true
		}
		return nil
	case acked:
		floor := p.floor[n.as(begun)]
		if n.seq < floor {
			return fmt.Errorf("%s: token %d was admitted after %d had been acknowledged", n.resource, n.seq, floor)
		}
	}
	m.least = max(m.least, n.seq)
	if n.what != marked && n.key != "-" {
		c := p.cell(n)
		c.n, c.seq = max(c.n, n.n), max(c.seq, n.seq)
	}
	return nil
}

// check reads a store that was opened after a crash.
func (p *promises) check(s store) error {
	highest := map[string]uint64{} // of the tokens of values
	pairs := map[string]uint64{}
	for name, c := range p.cells {
		got, err := p.checkCell(s, name, c)
		if err != nil {
			return err
		}
		highest[name.resource] = max(highest[name.resource], got.seq)
		if strings.HasPrefix(name.key, "pair") {
			if n, there := pairs[name.key]; there && n != got.n {
				return fmt.Errorf("%s: half a transaction is there: write %d of one resource and %d of the other", name.key, n, got.n)
			}
			pairs[name.key] = got.n
		}
	}
	for resource, m := range p.marks {
		got, err := s.highest(resource)
		if err != nil {
			return fmt.Errorf("%s: mark: %w", resource, err)
		}
		least := max(m.least, highest[resource])
		if got.Seq < least || got.Seq > m.most {
			return fmt.Errorf("%s: the mark is %d, want one from %d to %d", resource, got.Seq, least, m.most)
		}
		if m.least < 2 {
			continue
		}
		late := note{resource: resource, key: "late", seq: m.least - 1}
		if err := s.write(late); !errors.Is(err, fence.ErrStale) {
			return fmt.Errorf("%s: token %d after %d was acknowledged: got %w, want ErrStale", resource, late.seq, m.least, err)
		}
	}
	return s.check()
}

func (p *promises) checkCell(s store, name cellName, c *cell) (note, error) {
	text, err := s.get(name.resource, name.key)
	if err != nil {
		return note{}, fmt.Errorf("%s %s: %w", name.resource, name.key, err)
	}
	var got note
	if text != "" {
		if got, err = readNote(name.resource, name.key, text); err != nil {
			return got, err
		}
		if !c.writes[got.as(begun)] {
			return got, fmt.Errorf("%s %s: write %d with token %d never began", name.resource, name.key, got.n, got.seq)
		}
	}
	have, want := got.n, c.n
	if strings.HasPrefix(name.key, "shared") {
		have, want = got.seq, c.seq
	}
	if have < want {
		return got, fmt.Errorf("%s %s: %d is there, %d was acknowledged or read", name.resource, name.key, have, want)
	}
	return got, nil
}
