package model

import (
	"fmt"
	"strings"
)

// Search is a set of behaviours to go through.
type Search struct {
	// Acquisitions is how many clients try to get the lock once, 1 to 3.
	Acquisitions int
	// Floors are the numbers that a server may hear as the floor of a take,
	// besides none: any of them at any server, because the servers' clocks bound
	// them differently.
	Floors []uint64
	// Doubled is how many servers get the take of each client twice.
	Doubled int
	// Renewals lets those who were granted the lock renew and repair.
	Renewals bool
	// Defect leaves something out, or adds a fault. The search must then find a
	// violation.
	Defect Defect
	// Limit ends the search after so many states; 0 is none.
	Limit int
	// Explain keeps how each state was reached, for Violation.Path. It takes much
	// memory.
	Explain bool
}

// String names the search, for tests.
func (s Search) String() string {
	text := fmt.Sprintf("%d acquisitions", s.Acquisitions)
	if len(s.Floors) > 0 {
		text += " with floors"
	}
	if s.Doubled > 0 {
		text += fmt.Sprintf(" and %d doubled takes each", s.Doubled)
	}
	if s.Renewals {
		text += " and renewals"
	}
	return text
}

// Defect is a broken Redlock, or a broken server.
type Defect string

// The defects. The counter of a confirmation names the one who was given it, so it
// alone keeps out who has lost the lock: NoOwnerCheck leaves both out.
const (
	NoWriteBack      Defect = "the highest number is not written back"
	NoOwnerCheck     Defect = "a confirmation does not look whose lock it is"
	NoCounterCheck   Defect = "a confirmation does not look at the counter"
	LateReplies      Defect = "a late reply is counted"
	Minority         Defect = "a minority is enough"
	TakenIsConfirmed Defect = "every taken lock counts as confirmed"
	Forgets          Defect = "a server forgets"
	RepairsPassed    Defect = "a server whose counter has passed the token is repaired"
)

// Violation is two grants that break the promise.
type Violation struct {
	What string
	Path []string // with Explain: how it came
}

// Result is what a search has found.
type Result struct {
	States    int
	Complete  bool // all states were seen
	Violation *Violation
}

// run is a search under way.
type run struct {
	Search
	widths widths
	seen   visited
	queue  []key
	came   map[key]from
	now    key
	found  *Violation
	err    error
}

type from struct {
	state key
	by    string
}

// Run goes through all behaviours, breadth first.
func (s Search) Run() (Result, error) {
	r := &run{Search: s, widths: widths{acqs: s.Acquisitions, number: 4, copies: 1, doubled: s.Doubled > 0}}
	if s.Acquisitions > 2 && len(s.Floors) == 0 && s.Doubled == 0 {
		r.widths.number = 3
	}
	if s.Doubled > 0 {
		r.widths.copies = 2
	}
	if err := r.widths.check(); err != nil {
		return Result{}, err
	}
	if s.Explain {
		r.came = make(map[key]from)
	}
	for _, start := range r.starts() {
		r.reach(start, "")
	}
	for len(r.queue) > 0 && r.found == nil && r.err == nil {
		if s.Limit > 0 && r.seen.n >= s.Limit {
			return Result{States: r.seen.n}, nil
		}
		level := r.queue
		r.queue = nil
		for _, k := range level {
			if r.now = k; r.found == nil {
				r.expand(r.widths.decode(k))
			}
		}
	}
	return Result{States: r.seen.n, Complete: r.found == nil, Violation: r.found}, r.err
}

// starts are the states with all takes on their way, for each choice of the
// servers that get one twice.
func (r *run) starts() []state {
	all := []state{{}}
	for i := range r.Acquisitions {
		var next []state
		for _, s := range all {
			for twice := range 1 << nodes {
				if ones(uint8(twice)) != r.Doubled {
					continue
				}
				for j := range nodes {
					s.acqs[i].at[j].copies = 1 + uint8(twice>>j&1)
				}
				next = append(next, s)
			}
		}
		all = next
	}
	return all
}

// reach adds a state and looks whether it breaks the promise.
func (r *run) reach(s state, format string, args ...any) {
	if high := s.highest(); high >= 1<<r.widths.number {
		r.err = fmt.Errorf("the number %d does not fit into %d bits", high, r.widths.number)
		return
	}
	k := r.widths.encode(&s)
	if !r.seen.add(k) {
		return
	}
	r.queue = append(r.queue, k)
	if r.came != nil {
		r.came[k] = from{r.now, fmt.Sprintf(format, args...)}
	}
	if what := r.broken(&s); what != "" && r.found == nil {
		r.found = &Violation{What: what, Path: r.path(k)}
	}
}

func (r *run) path(k key) (path []string) {
	for f, ok := r.came[k]; ok && f.by != ""; f, ok = r.came[f.state] {
		path = append([]string{f.by}, path...)
	}
	return path
}

// broken is the promise: no two grants have one number, and who began after a
// grant has a higher one.
func (r *run) broken(s *state) string {
	for i := range r.Acquisitions {
		a := &s.acqs[i]
		for j := range r.Acquisitions {
			b := &s.acqs[j]
			if i == j || a.phase != granted || b.phase != granted {
				continue
			}
			if a.token == b.token && i < j {
				return fmt.Sprintf("clients %d and %d both have the token %d", i+1, j+1, a.token)
			}
			if a.after&(1<<j) != 0 && a.token < b.token {
				return fmt.Sprintf("client %d has the token %d, and began after client %d had %d", i+1, a.token, j+1, b.token)
			}
		}
	}
	return ""
}

func ones(b uint8) int { return strings.Count(fmt.Sprintf("%b", b), "1") }
