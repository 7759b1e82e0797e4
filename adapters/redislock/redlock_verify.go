package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// Verify implements fence.Verifier: it reads the lock that is named like the
// resource from all servers and returns nil if t is its present grant on a
// majority. Any other answer is a *fence.UnverifiedError; with the reason
// fence.ErrNoAnswer, no majority could be reached, it is also over
// locks.ErrUnreachable, or over locks.ErrCancelled or locks.ErrClosed. It takes at
// most twice RedlockOptions.NodeTimeout.
func (r *Redlock) Verify(ctx context.Context, resource string, t fence.Token) error {
	no := &fence.UnverifiedError{Resource: resource, Offered: t}
	because := func(reason, err error) error {
		no.Reason, no.Err = reason, err
		return no
	}
	away := func(err error) error {
		return because(fence.ErrNoAnswer, locks.Unanswered(ctx, resource, failure("verify", resource, err)))
	}
	if !r.mayNumber(resource, t.Lineage) {
		return because(fence.ErrNoVerifier, nil)
	}
	end, err := r.group.Begin("verify", resource)
	if err != nil {
		return because(fence.ErrNoAnswer, err)
	}
	defer end()
	if err := r.ready(ctx); err != nil {
		return away(err)
	}
	if want := r.lineage(resource); t.Lineage != want {
		return because(fence.ErrNoVerifier, fmt.Errorf("the lock's tokens have the lineage %q", want))
	}
	k := newRedlockKeys(r.prefix, resource)
	yes, refused := 0, 0
	others := make(map[fence.Token]int)
	var errs []error
	replies := broadcast(ctx, r, r.nodes, func(ctx context.Context, n *node) (present, error) { return r.readOn(ctx, n, k, t) })
	late := gather(ctx, r, replies, len(r.nodes), func(rep reply[present]) bool {
		switch {
		case rep.err != nil:
			errs = append(errs, rep.err)
		case rep.value.same:
			yes++
		default:
			refused++
			others[rep.value.other]++
		}
		// A majority that has the same other grant can be named.
		return yes < r.majority() && others[rep.value.other] < r.majority()
	})
	switch {
	case yes >= r.majority():
		return nil
	case refused > len(r.nodes)-r.majority():
		for other, n := range others {
			if n >= r.majority() && !other.IsZero() {
				other.Lineage = t.Lineage
				no.Current = other
			}
		}
		return because(fence.ErrNotGranted, nil)
	case late > 0:
		errs = append(errs, fmt.Errorf("%d did not answer in time", late))
	}
	return away(fmt.Errorf("no majority of the servers could be reached: %w", inOrder(errs)))
}

// mayNumber reports whether the lineage is one of the lock, as far as its text
// tells: it is, in some set of servers.
func (r *Redlock) mayNumber(name, lineage string) bool {
	rest, _ := strings.CutPrefix(lineage, "redlock:")
	set, _, _ := strings.Cut(rest, ":")
	return lineage == locks.Lineage("redlock", redlockIdentity(set, r.prefix, name))
}

// present is what one server has of a lock.
type present struct {
	same  bool        // the token that was asked about
	other fence.Token // or this one, without a lineage; zero if the lock is free
}

// readOn asks one server.
func (r *Redlock) readOn(ctx context.Context, n *node, k redlockKeys, t fence.Token) (present, error) {
	server, err := n.meet(ctx)
	if err != nil {
		return present{}, err
	}
	reply, err := n.run(ctx, redlockRead, []string{k.lock(), k.count(), k.node()}, t.Holder, t.Seq, server)
	switch {
	case err != nil:
		return present{}, err
	case len(reply) == 1 && reply[0] == int64(1):
		return present{same: true}, nil
	case len(reply) == 1 && reply[0] == "another":
		return present{}, n.another()
	case len(reply) != 3 || reply[0] != int64(0):
		return present{}, fmt.Errorf("the read script replied %s", shown(reply))
	}
	holder, _ := reply[1].(string)
	count, _ := reply[2].(string)
	p := present{other: fence.Token{Holder: holder}}
	if number, by, _ := strings.Cut(count, " "); by == holder {
		p.other.Seq, _ = strconv.ParseUint(number, 10, 53)
	}
	return p, nil
}
