package model

// Node is what one server keeps for one lock.
type Node struct {
	Owner    uint8  // the attempt that has the lock, 0: free
	Count    uint64 // the counter, 0: there is none
	Last     uint8  // the attempt that the counter names
	Released bool   // the counter says that it gave the lock back
	Gone     uint8  // a bit for each attempt that is shut out
}

// Op is a request to one server, or what happens to it.
type Op uint8

// The requests, each of which is a script, and the end of a lock's time.
const (
	Take    Op = iota // ID, Floor, Bound
	Confirm           // ID, Given, Token
	Renew             // ID, Token
	Repair            // ID, Token
	Release           // ID
	Shut              // ID: a release that shuts late copies out
	Expire
	Forget // the counter expires or is lost
)

// Command is one request of an attempt. IDs are 1 to 8.
type Command struct {
	Op    Op
	ID    uint8
	Now   uint64 // the server's clock
	Floor uint64
	Bound uint64
	Given uint64 // the number that this server gave
	Token uint64
}

// Status is what the server replies.
type Status string

// The replies; those to Release are as of the script.
const (
	Granted  Status = "granted" // with Number
	Held     Status = "held"
	Over     Status = "over"
	Yes      Status = "1" // confirmed; released, now or before
	No       Status = "0" // refused; there was nothing to release
	Others   Status = "2" // another has the lock
	Renewed  Status = "renewed"
	Repaired Status = "repaired"
	Free     Status = "free" // may be repaired
	Other    Status = "other"
	Lost     Status = "lost"
	None     Status = ""
)

// Reply is a status and, with Granted, the number.
type Reply struct {
	Status Status
	Number uint64
}

// Step is one server's part of Redlock: what a request does to what it keeps, and
// what it replies. The scripts of package redislock do the same, which a test
// compares on a real server; the search drives it through every order of requests.
func Step(n Node, c Command) (Node, Reply) {
	switch c.Op {
	case Take:
		return n.take(c)
	case Confirm:
		mine := n.Last == c.ID && !n.Released && (n.Count == c.Given || n.Count == c.Token)
		if n.Owner != c.ID || !mine {
			return n, Reply{Status: No}
		}
		n.Count = c.Token
		return n, Reply{Status: Yes}
	case Renew, Repair:
		return n.renew(c)
	case Release, Shut:
		return n.release(c)
	case Expire:
		n.Owner = 0
	case Forget:
		n.Count, n.Last, n.Released = 0, 0, false
	}
	return n, Reply{}
}

func (n Node) take(c Command) (Node, Reply) {
	switch {
	case n.Gone&bit(c.ID) != 0:
		return n, Reply{Status: Over}
	case n.Owner != 0 && n.Owner != c.ID:
		return n, Reply{Status: Held}
	case n.Owner == c.ID && n.Count > 0:
		return n, Reply{Granted, n.Count}
	case n.Last == c.ID:
		return n, Reply{Status: Over}
	}
	n.Count = max(n.Count+1, min(c.Floor, c.Now+c.Bound), c.Now)
	n.Owner, n.Last, n.Released = c.ID, c.ID, false
	return n, Reply{Granted, n.Count}
}

func (n Node) renew(c Command) (Node, Reply) {
	if n.Owner == c.ID {
		if n.Count < c.Token {
			n.Count, n.Last, n.Released = c.Token, c.ID, false
		}
		return n, Reply{Status: Renewed}
	}
	released := n.Last == c.ID && n.Released && n.Count == c.Token
	switch {
	case n.Owner != 0:
		return n, Reply{Status: Other}
	case n.Gone&bit(c.ID) != 0 || released || n.Count == 0 || n.Count > c.Token:
		return n, Reply{Status: Lost}
	case c.Op == Renew:
		return n, Reply{Status: Free}
	}
	n.Owner, n.Count, n.Last, n.Released = c.ID, c.Token, c.ID, false
	return n, Reply{Status: Repaired}
}

func (n Node) release(c Command) (Node, Reply) {
	if c.Op == Shut {
		n.Gone |= bit(c.ID)
	}
	switch {
	case n.Owner == c.ID:
		n.Owner = 0
		n.Released = n.Released || n.Last == c.ID
		return n, Reply{Status: Yes}
	case n.Last == c.ID && n.Released:
		return n, Reply{Status: Yes}
	case n.Owner != 0:
		return n, Reply{Status: Others}
	}
	return n, Reply{Status: No}
}

func bit(id uint8) uint8 { return 1 << (id - 1) }
