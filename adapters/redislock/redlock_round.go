package redislock

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// outcome is what one round of takes has come to.
type outcome struct {
	seq     uint64 // the token's number, 0: not granted
	sent    time.Time
	granted []grantOn // the servers that were counted
	held    []nodeAnswer
	over    int     // servers where this attempt is over
	errs    []error // of the others
	late    int     // servers that have not replied
	footing *footing
}

// grantOn is the number that one server gave.
type grantOn struct {
	node *node
	seq  uint64
}

// footing is where a late copy of an attempt's requests might still take the
// lock, by the server's index. Release shuts those out.
type footing struct{ unsure []atomic.Bool }

// taken is whether a server may have something that is to be given back before
// the next round.
func (o *outcome) taken() bool { return len(o.granted) > 0 || o.over > 0 }

// answered is how many servers have said something of the lock.
func (o *outcome) answered() int { return len(o.granted) + len(o.held) + o.over }

// round is one attempt to get the lock, in the steps of the package comment. waiter is empty for a caller that does not wait.
func (a *redlockAttempt) round(waiter string) outcome {
	r := a.redlock
	begun := time.Now()
	o := outcome{sent: begun, footing: &footing{make([]atomic.Bool, len(r.nodes))}}
	for i := range o.footing.unsure {
		o.footing.unsure[i].Store(true)
	}
	a.asked = true
	id, arrival := a.id, a.arrival
	replies := broadcast(a.ctx, r, r.nodes, func(ctx context.Context, n *node) (nodeAnswer, error) {
		return r.takeOn(ctx, n, a.keys, id, o.sent, arrival, waiter)
	})
	o.late = gatherQuick(a.ctx, r, r.nodes, replies, func(rep reply[nodeAnswer]) bool {
		o.count(rep)
		return len(o.granted) < r.majority()
	}, func(left int) bool { return len(o.granted)+left >= r.majority() })
	if len(o.granted) < r.majority() || !a.confirm(&o) {
		return o
	}
	if locks.Elapsed(o.sent) >= locks.Validity(r.ttl) {
		o.seq = 0
		o.errs = append(o.errs, errors.New("the grant had run out before it was confirmed"))
		return o
	}
	a.settle(o, begun, replies, waiter)
	return o
}

func (o *outcome) count(rep reply[nodeAnswer]) {
	switch {
	case rep.err != nil:
		o.errs = append(o.errs, rep.err)
	case rep.value.status == "granted":
		o.granted = append(o.granted, grantOn{rep.node, rep.value.seq})
		o.footing.unsure[rep.node.index].Store(false)
	case rep.value.status == "held":
		o.held = append(o.held, rep.value)
	default:
		o.over++
	}
}

// confirm chooses the token and has it stored where another number was given. It
// reports whether a majority has stored it.
func (a *redlockAttempt) confirm(o *outcome) bool {
	r := a.redlock
	token := uint64(0)
	for _, g := range o.granted {
		token = max(token, g.seq)
	}
	confirmed := 0
	given := make(map[*node]uint64)
	var behind []*node
	for _, g := range o.granted {
		if g.seq == token {
			confirmed++
			continue
		}
		given[g.node] = g.seq
		behind = append(behind, g.node)
	}
	if confirmed < r.majority() {
		id := a.id
		replies := broadcast(a.ctx, r, behind, func(ctx context.Context, n *node) (bool, error) {
			return r.confirmOn(ctx, n, a.keys, id, given[n], token)
		})
		gather(a.ctx, r, replies, len(behind), func(rep reply[bool]) bool {
			switch {
			case rep.err != nil:
				o.errs = append(o.errs, rep.err)
			case rep.value:
				confirmed++
			}
			return confirmed < r.majority()
		})
	}
	if confirmed < r.majority() {
		return false
	}
	o.seq = token
	return true
}

// settle hears the late replies to the takes of a round that was granted. They are
// not counted. A server where the lock was still held has noted the waiter, which
// waits no longer.
func (a *redlockAttempt) settle(o outcome, begun time.Time, replies <-chan reply[nodeAnswer], waiter string) {
	r := a.redlock
	heard := func(rep reply[nodeAnswer]) bool {
		o.count(rep)
		return true
	}
	late := linger(r, begun, replies, o.late, heard)
	if late == 0 && (waiter == "" || len(o.held) == 0) {
		return
	}
	r.group.Go(func() {
		ctx := context.Background()
		gather(ctx, r, replies, late, heard)
		if waiter == "" || len(o.held) == 0 {
			return
		}
		there := slices.DeleteFunc(slices.Clone(r.nodes), func(n *node) bool { return !o.footing.unsure[n.index].Load() })
		replies := broadcast(ctx, r, there, func(ctx context.Context, n *node) (int64, error) {
			return r.releaseOn(ctx, n, a.keys, waiter, waiter, false, "")
		})
		gather(ctx, r, replies, len(there), func(reply[int64]) bool { return true })
	})
}
