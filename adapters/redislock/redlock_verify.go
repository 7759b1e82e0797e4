package redislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Verify implements fence.Verifier: it reads the lock that is named like the
// resource from all servers and returns nil if the token is the present grant on
// a majority. Otherwise the error is over fence.ErrUnverified, and also if no
// majority can be reached. It takes at most twice RedlockOptions.NodeTimeout.
func (r *Redlock) Verify(ctx context.Context, resource string, t fence.Token) error {
	end, err := r.group.Begin("verify", resource)
	if err != nil {
		return unverified(resource, t, err)
	}
	defer end()
	if err := r.ready(ctx); err != nil {
		return unverified(resource, t, err)
	}
	if want := r.lineage(resource); t.Lineage != want {
		return unverified(resource, t, fmt.Errorf("the lock's tokens have the lineage %q", want))
	}
	k := newRedlockKeys(r.prefix, resource)
	yes, no := 0, 0
	var why error
	var errs []error
	replies := broadcast(ctx, r, r.nodes, func(ctx context.Context, n *node) (error, error) { return r.readOn(ctx, n, k, t) })
	late := gather(ctx, r, replies, len(r.nodes), func(rep reply[error]) bool {
		switch {
		case rep.err != nil:
			errs = append(errs, rep.err)
		case rep.value != nil:
			no++
			why = rep.value
		default:
			yes++
		}
		return yes < r.majority() && no <= len(r.nodes)-r.majority()
	})
	switch {
	case yes >= r.majority():
		return nil
	case no > len(r.nodes)-r.majority():
		return unverified(resource, t, fmt.Errorf("it is not the present grant: %w", why))
	case late > 0 && ctx.Err() != nil:
		errs = append(errs, context.Cause(ctx))
	}
	return unverified(resource, t, fmt.Errorf("no majority of the servers could be reached: %w", errors.Join(errs...)))
}

func unverified(resource string, t fence.Token, err error) error {
	return fmt.Errorf("%w: %v for %q: %w", fence.ErrUnverified, t, resource, err)
}

// readOn returns why the token is not the grant that a server has, or nil.
func (r *Redlock) readOn(ctx context.Context, n *node, k redlockKeys, t fence.Token) (why, err error) {
	reply, err := n.run(ctx, redlockRead, []string{k.lock(), k.count()}, t.Holder, t.Seq)
	switch {
	case err != nil:
		return nil, err
	case len(reply) == 1 && reply[0] == int64(1):
		return nil, nil
	case len(reply) != 3 || reply[0] != int64(0):
		return nil, fmt.Errorf("the read script replied %s", shown(reply))
	case reply[1] == "":
		return fmt.Errorf("server %d has the lock free, and the last number is %q", n.number(), reply[2]), nil
	}
	return fmt.Errorf("server %d has the holder %q and the number %q", n.number(), reply[1], reply[2]), nil
}
