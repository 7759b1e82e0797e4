package model

// expand reaches every state that one message, or one lock's end, leads to.
func (r *run) expand(s state) {
	for j := range nodes {
		if s.nodes[j].Owner != 0 {
			next := s
			next.nodes[j], _ = Step(s.nodes[j], Command{Op: Expire})
			r.reach(next, "the lock on server %d runs out", j+1)
		}
		if r.Defect == Forgets && s.nodes[j] != (Node{}) {
			next := s
			next.nodes[j] = Node{}
			r.reach(next, "server %d forgets", j+1)
		}
	}
	for i := range r.Acquisitions {
		for j := range nodes {
			r.take(s, i, j)
			r.confirm(s, i, j)
			r.renew(s, i, j)
			r.hearLate(s, i, j)
		}
		r.freeze(s, i)
	}
}

func (r *run) quorum() int {
	if r.Defect == Minority {
		return 1
	}
	return majority
}

// take lets a copy of a take arrive.
func (r *run) take(s state, i, j int) {
	a := &s.acqs[i]
	if a.at[j].copies == 0 {
		return
	}
	a.at[j].copies--
	if !a.begun {
		a.begun = true
		for k := range r.Acquisitions {
			if s.acqs[k].phase == granted {
				a.after |= 1 << k
			}
		}
	}
	before := s.nodes[j]
	r.taken(s, i, j, before, 0)
	for _, floor := range r.Floors {
		if floor > before.Count+1 {
			r.taken(s, i, j, before, floor)
		}
	}
}

func (r *run) taken(s state, i, j int, before Node, floor uint64) {
	a := &s.acqs[i]
	var reply Reply
	s.nodes[j], reply = Step(before, Command{Op: Take, ID: uint8(i + 1), Floor: floor, Bound: floor})
	number := uint8(reply.Number)
	p := &a.at[j]
	switch {
	case reply.Status != Granted:
	case a.phase != taking && r.Defect != LateReplies: // nobody waits for it
	case p.in: // so has the first reply
	case p.first == 0 || p.first == number:
		p.first = number
	default:
		p.second = number
	}
	r.reach(s, "server %d: take by client %d, floor %d: %s %d", j+1, i+1, floor, reply.Status, number)
}

// freeze lets a client count the replies of any majority, choose the token, and
// send the confirmations.
func (r *run) freeze(s state, i int) {
	if s.acqs[i].phase != taking {
		return
	}
	for choice := range 27 { // for each server: not counted, first reply, second reply
		next := s
		a := &next.acqs[i]
		rest, counted, token, possible := choice, 0, uint8(0), true
		for j := range nodes {
			p := &a.at[j]
			which := rest % 3
			rest /= 3
			number := [3]uint8{0, p.first, p.second}[which]
			if which > 0 && number == 0 {
				possible = false
				break
			}
			p.in, p.ok = which > 0, false
			if r.Defect != LateReplies || p.in {
				p.first, p.second = number, 0
			}
			if p.in {
				counted++
				token = max(token, number)
			}
		}
		if !possible || counted < r.quorum() {
			continue
		}
		a.phase, a.token = frozen, token
		for j := range nodes {
			p := &a.at[j]
			p.ok = p.in && (p.first == token || r.Defect == NoWriteBack)
		}
		r.decide(&next, i)
		r.reach(next, "client %d counts %d servers and has the token %d", i+1, counted, token)
	}
}

// decide lets a client have the lock once a majority has confirmed.
func (r *run) decide(s *state, i int) {
	a := &s.acqs[i]
	confirmed := 0
	for j := range nodes {
		if a.at[j].ok || a.at[j].in && r.Defect == TakenIsConfirmed {
			confirmed++
		}
	}
	if a.phase == frozen && confirmed >= r.quorum() {
		a.phase = granted
	}
}

// confirm lets a confirmation arrive, which it may at any time after the freeze,
// and repeatedly.
func (r *run) confirm(s state, i, j int) {
	a := &s.acqs[i]
	p := &a.at[j]
	if !p.in || p.ok {
		return
	}
	n := s.nodes[j]
	id := uint8(i + 1)
	c := Command{Op: Confirm, ID: id, Given: uint64(p.first), Token: uint64(a.token)}
	asked := n
	switch r.Defect {
	case NoOwnerCheck:
		asked.Owner, asked.Last, c.Given = id, id, n.Count
	case NoCounterCheck:
		asked.Last, c.Given = id, n.Count
	case LateReplies:
		// The late number may be above the token, which then sets it back.
	}
	asked, reply := Step(asked, c)
	if reply.Status != Yes {
		return
	}
	if r.Defect == NoOwnerCheck {
		asked.Owner = n.Owner
	}
	if r.Defect == NoOwnerCheck || r.Defect == NoCounterCheck {
		asked.Last = n.Last
	}
	s.nodes[j] = asked
	p.ok = true
	r.decide(&s, i)
	r.reach(s, "server %d: client %d's token %d confirmed", j+1, i+1, a.token)
}

// hearLate counts a reply that has come after the freeze.
func (r *run) hearLate(s state, i, j int) {
	a := &s.acqs[i]
	p := &a.at[j]
	if r.Defect != LateReplies || a.phase == taking || p.in || p.first == 0 {
		return
	}
	p.in = true
	p.ok = p.first == a.token
	r.decide(&s, i)
	r.reach(s, "client %d counts the late number %d of server %d", i+1, p.first, j+1)
}

// renew lets a renewal arrive and a repair, which its client has sent at any time
// since the grant.
func (r *run) renew(s state, i, j int) {
	a := &s.acqs[i]
	if !r.Renewals || a.phase != granted {
		return
	}
	for _, op := range []Op{Renew, Repair} {
		n := s.nodes[j]
		if r.Defect == RepairsPassed {
			n.Count = min(n.Count, uint64(a.token))
		}
		n, reply := Step(n, Command{Op: op, ID: uint8(i + 1), Token: uint64(a.token)})
		if reply.Status != Renewed && reply.Status != Repaired {
			continue
		}
		next := s
		next.nodes[j] = n
		r.reach(next, "server %d: %s for client %d", j+1, reply.Status, i+1)
	}
}
