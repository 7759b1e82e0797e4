package redislock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// maxCleaning is how many removals may wait for servers that do not answer. What
// is beyond that is left to the servers, which forget it after TTL.
const maxCleaning = 1024

// redlockHold is a grant on the servers. Its methods are never called twice at
// once.
type redlockHold struct {
	redlock *Redlock
	name    string
	keys    redlockKeys
	id      string
	waiter  string
	token   uint64
	footing *footing
	freed   map[*node]bool // by an earlier release
}

// renew extends the lock on a majority, and then takes it again on servers where
// it is free that have not passed the token. It returns an error over
// locks.ErrLost if so many servers do not have it that no majority is left.
func (h *redlockHold) renew(ctx context.Context) error {
	r := h.redlock
	renewed, gone := 0, 0
	var free []*node
	var errs []error
	replies := broadcast(ctx, r, r.nodes, func(ctx context.Context, n *node) (string, error) {
		return r.renewOn(ctx, n, h.keys, h.id, h.token, false)
	})
	gatherQuick(ctx, r, r.nodes, replies, func(rep reply[string]) bool {
		switch {
		case rep.err != nil:
			errs = append(errs, rep.err)
		case rep.value == "renewed":
			renewed++
		default:
			gone++
			if rep.value == "free" {
				free = append(free, rep.node)
			}
		}
		return true
	}, func(left int) bool { return renewed < r.majority() && renewed+left >= r.majority() })
	switch {
	case renewed >= r.majority():
		h.repair(ctx, free)
		return nil
	case gone > len(r.nodes)-r.majority():
		return fmt.Errorf("%w: %d of %d servers have no such grant", locks.ErrLost, gone, len(r.nodes))
	}
	return fmt.Errorf("%d of %d servers renewed, and a majority must: %w", renewed, len(r.nodes), orSilent(errs))
}

// orSilent is the errors of the servers that have failed, if any has said more than
// nothing.
func orSilent(errs []error) error {
	if len(errs) == 0 {
		return errors.New("the others did not reply in time")
	}
	return inOrder(errs)
}

// repair takes the lock again on servers that have it free, after a majority has
// renewed.
func (h *redlockHold) repair(ctx context.Context, free []*node) {
	r := h.redlock
	for _, n := range free {
		h.footing.unsure[n.index].Store(true)
	}
	replies := broadcast(ctx, r, free, func(ctx context.Context, n *node) (string, error) {
		return r.renewOn(ctx, n, h.keys, h.id, h.token, true)
	})
	gather(ctx, r, replies, len(free), func(rep reply[string]) bool {
		if rep.err == nil {
			h.footing.unsure[rep.node.index].Store(false)
			r.log.Debug("redislock: a server had lost the lock", "server", rep.node.number(), "lock", h.name, "now", rep.value)
		}
		return true
	})
}

// release frees the lock on all servers. It returns nil if a majority has, and
// an error over locks.ErrLost if so many had it no longer that none could.
func (h *redlockHold) release(ctx context.Context) error {
	r := h.redlock
	var left []*node
	for _, n := range r.nodes {
		if !h.freed[n] {
			left = append(left, n)
		}
	}
	gone := 0
	var errs []error
	r.clean(ctx, h.name, left, func(ctx context.Context, n *node) (int64, error) {
		return r.releaseOn(ctx, n, h.keys, h.id, h.waiter, h.footing.unsure[n.index].Load(), r.wakeup())
	}, func(rep reply[int64]) bool {
		switch {
		case rep.err != nil:
			errs = append(errs, rep.err)
		case rep.value == freed:
			h.freed[rep.node] = true
		default:
			gone++
		}
		return len(h.freed) < r.majority()
	}, func(left int) bool { return len(h.freed) < r.majority() && len(h.freed)+left >= r.majority() })
	switch {
	case len(h.freed) >= r.majority():
		return nil
	case gone > len(r.nodes)-r.majority():
		return errNotThere
	}
	return fmt.Errorf("%d of %d servers freed the lock, and a majority must: %w", len(h.freed), len(r.nodes), orSilent(errs))
}

// removal is a request that removes something from a server, and replies what the
// release script says.
type removal func(context.Context, *node) (int64, error)

// clean sends a removal and hands on the replies until got returns false or ctx has
// ended: see gatherQuick. In the background it hears the others, and sends the request again
// to servers that have not confirmed it, until they have or have forgotten by
// themselves.
func (r *Redlock) clean(ctx context.Context, name string, nodes []*node, remove removal, got func(reply[int64]) bool, open func(left int) bool) {
	waiting := make(map[*node]bool)
	for _, n := range nodes {
		waiting[n] = true
	}
	heard := func(rep reply[int64]) bool {
		if rep.err == nil || hopeless(rep.err) {
			delete(waiting, rep.node)
		}
		return true
	}
	begun := time.Now()
	replies := broadcast(ctx, r, nodes, remove)
	late := gatherQuick(ctx, r, nodes, replies, func(rep reply[int64]) bool { return heard(rep) && got(rep) }, open)
	if ctx.Err() == nil {
		late = linger(r, begun, replies, late, heard)
	}
	if len(waiting) == 0 {
		return
	}
	if r.cleaning.Add(1) > maxCleaning {
		r.cleaning.Add(-1)
		r.log.Warn("redislock: too many removals wait; the servers forget this one by themselves", "lock", name)
		return
	}
	r.group.Go(func() {
		defer r.cleaning.Add(-1)
		gather(context.Background(), r, replies, late, heard)
		if len(waiting) > 0 {
			r.cleanLater(name, waiting, remove)
		}
	})
}

func (r *Redlock) cleanLater(name string, waiting map[*node]bool, remove removal) {
	ctx := context.Background()
	pause := r.options.retryMin()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for begun := time.Now(); len(waiting) > 0; {
		timer.Reset(jitter(pause))
		select {
		case <-timer.C:
		case <-r.ctx.Done(): // one last time
		}
		last := r.ctx.Err() != nil || time.Since(begun) > r.ttl
		pause = min(2*pause, r.options.pollInterval())
		nodes := slices.Collect(maps.Keys(waiting))
		var err error
		gather(ctx, r, broadcast(ctx, r, nodes, remove), len(nodes), func(rep reply[int64]) bool {
			if rep.err == nil || hopeless(rep.err) {
				delete(waiting, rep.node)
			}
			err = errors.Join(err, rep.err)
			return true
		})
		if last && len(waiting) > 0 {
			r.log.Warn("redislock: cleanup; the servers forget it by themselves", "lock", name, "error", err)
			return
		}
	}
}
