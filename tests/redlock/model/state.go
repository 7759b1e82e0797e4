package model

import "fmt"

const (
	nodes    = 3
	majority = 2
	maxAcq   = 3
)

// phases of an acquisition
const (
	taking  uint8 = iota
	frozen        // the set is chosen, and with it the token
	granted       // a majority has confirmed
)

// acquisition is one client's way to a grant. It is at most 3 times in a state.
type acquisition struct {
	phase uint8
	begun bool  // a server has seen its request
	after uint8 // a bit for each acquisition that was granted before it began
	token uint8
	at    [nodes]part
}

// part is what an acquisition has to do with one server.
type part struct {
	copies uint8 // of the take that may still arrive
	first  uint8 // number in a reply that is on its way; after the freeze, what counts
	second uint8 // in the reply to the second copy
	in     bool  // of the frozen set
	ok     bool  // has confirmed
}

// state is all servers, all clients, and all messages on their way. A message that
// is lost is one that stays on its way.
type state struct {
	nodes [nodes]Node // Released and Gone are not used
	acqs  [maxAcq]acquisition
}

// highest is the highest number. Those in replies and tokens are some counter's, but
// a counter may have gone back.
func (s *state) highest() uint64 {
	high := uint64(0)
	for i := range s.nodes {
		high = max(high, s.nodes[i].Count)
	}
	for i := range s.acqs {
		a := &s.acqs[i]
		high = max(high, uint64(a.token))
		for j := range a.at {
			high = max(high, uint64(a.at[j].first), uint64(a.at[j].second))
		}
	}
	return high
}

// key is a state in 128 bits.
type key struct{ hi, lo uint64 }

func (k *key) push(v uint8, bits uint) {
	k.hi = k.hi<<bits | k.lo>>(64-bits)
	k.lo = k.lo<<bits | uint64(v)
}

func (k *key) pop(bits uint) uint8 {
	v := uint8(k.lo & (1<<bits - 1))
	k.lo = k.lo>>bits | k.hi<<(64-bits)
	k.hi >>= bits
	return v
}

// widths of numbers and copies, in bits, that a search needs.
type widths struct {
	acqs           int
	number, copies uint
	doubled        bool // replies to a second copy are kept
}

func (w widths) check() error {
	part := w.copies + w.number + 2
	if w.doubled {
		part += w.number
	}
	perAcq := 2 + 1 + uint(w.acqs) + w.number + nodes*part
	if bits := nodes*(2+w.number+2) + uint(w.acqs)*perAcq; bits > 128 {
		return fmt.Errorf("a state takes %d bits, and there are 128", bits)
	}
	return nil
}

func (w widths) encode(s *state) key {
	var k key
	for i := range s.nodes {
		n := &s.nodes[i]
		k.push(n.Owner, 2)
		k.push(uint8(n.Count), w.number)
		k.push(n.Last, 2)
	}
	for i := range w.acqs {
		a := &s.acqs[i]
		k.push(a.phase, 2)
		k.push(asBit(a.begun), 1)
		k.push(a.after, uint(w.acqs))
		k.push(a.token, w.number)
		for j := range a.at {
			p := &a.at[j]
			k.push(p.copies, w.copies)
			k.push(p.first, w.number)
			if w.doubled {
				k.push(p.second, w.number)
			}
			k.push(asBit(p.in)<<1|asBit(p.ok), 2)
		}
	}
	return k
}

// decode is encode backwards.
func (w widths) decode(k key) (s state) {
	for i := w.acqs - 1; i >= 0; i-- {
		a := &s.acqs[i]
		for j := nodes - 1; j >= 0; j-- {
			p := &a.at[j]
			flags := k.pop(2)
			p.in, p.ok = flags&2 != 0, flags&1 != 0
			if w.doubled {
				p.second = k.pop(w.number)
			}
			p.first = k.pop(w.number)
			p.copies = k.pop(w.copies)
		}
		a.token = k.pop(w.number)
		a.after = k.pop(uint(w.acqs))
		a.begun = k.pop(1) == 1
		a.phase = k.pop(2)
	}
	for i := nodes - 1; i >= 0; i-- {
		n := &s.nodes[i]
		n.Last = k.pop(2)
		n.Count = uint64(k.pop(w.number))
		n.Owner = k.pop(2)
	}
	return s
}

func asBit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
