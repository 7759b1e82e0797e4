package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// meet makes sure that the server belongs to the set, and returns its id. It costs
// nothing once it has been met.
func (n *node) meet(ctx context.Context) (id string, err error) {
	r := n.redlock
	if id := n.met.Load(); id != nil {
		return *id, nil
	}
	c, err := n.introduce(ctx, motion{join: *r.set.Load()})
	if err != nil {
		return "", err
	}
	if c.set != *r.set.Load() {
		return "", n.stranger(c.set)
	}
	r.keep(c)
	// Another that seems to be the same one may have become another: they may have
	// changed addresses.
	for _, other := range r.alike(c) {
		again, err := other.introduce(ctx, motion{})
		if err != nil {
			return "", fmt.Errorf("it was server %d before, which is to tell whether it still is: %w", other.number(), err)
		}
		r.keep(again)
		if again.id != c.id {
			other.met.Store(nil)
		}
		if err := twice([]card{again, c}); err != nil {
			r.misfit.Store(&err)
			return "", err
		}
	}
	n.met.Store(&c.id)
	return c.id, nil
}

// alike are the nodes whose server was the one of c.
func (r *Redlock) alike(c card) (all []*node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.cards {
		if other.node != c.node && other.same(c) {
			all = append(all, other.node)
		}
	}
	return all
}

// keep notes the card of a server.
func (r *Redlock) keep(c card) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cards = append(slices.DeleteFunc(r.cards, func(old card) bool { return old.node == c.node }), c)
}

// another is the error of a server that is not the one that was met. It is met
// anew by the next request.
func (n *node) another() error {
	n.met.Store(nil)
	return errors.New("its address leads to another server than before")
}

// stranger is the error of a server of another set.
func (n *node) stranger(set any) error {
	n.met.Store(nil)
	err := badOption(fmt.Errorf("it belongs to the set %v and the others to %s; list the same servers in every client, "+
		"or delete the key %q of a server that is to change sets", set, *n.redlock.set.Load(), n.redlock.setKeys().set()))
	if n.strange.CompareAndSwap(false, true) {
		n.redlock.log.Warn("redislock: a server is not used", "server", n.number(), "error", err)
	}
	return err
}
