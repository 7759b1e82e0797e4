package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
)

// The servers of a set agree on its name, which is part of every token's lineage.
//
// Each server keeps one name, and does not change it but for the last rule below.
// A set has the name that a majority of its servers keeps. The first client gives
// all servers that have none a random one, or that of any server that has one.
// Clients that do so at once may leave several names and none on a majority. Then
// no server has none, no name ever gets a majority but the smallest, and so
// whoever sees all servers may move them to that one.

// card is how a server introduces itself.
type card struct {
	node *node
	run  string // changes when the server is started; empty if it does not tell
	id   string // is kept with its data
	set  string
}

// ready finds out the name of the set, once per Redlock.
func (r *Redlock) ready(ctx context.Context) error {
	if err := r.misfit.Load(); err != nil {
		return *err
	}
	if r.set.Load() != nil {
		return nil
	}
	select {
	case r.settling <- struct{}{}:
		defer func() { <-r.settling }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r.set.Load() != nil {
		return nil
	}
	fresh := fmt.Sprintf("%s/%d", rand.Text(), len(r.nodes))
	join, leave, rest := "", "", false
	for range 2*len(r.nodes) + 2 {
		cards, err := r.introduce(ctx, join, leave, rest)
		if err := twice(cards); err != nil {
			r.misfit.Store(&err)
			return err
		}
		name, names := count(cards)
		switch {
		case names[name] >= r.majority():
			if !strings.HasSuffix(name, fmt.Sprintf("/%d", len(r.nodes))) {
				return badOption(fmt.Errorf("the servers are the set %s, which has another number of servers than the %d listed; "+
					"list the same servers in every client", name, len(r.nodes)))
			}
			r.set.Store(&name)
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, c := range cards {
				if c.set == name {
					r.cards = append(r.cards, c)
					c.node.met.Store(true)
				}
			}
			return nil
		case len(cards) < r.majority():
			return errors.Join(fmt.Errorf("%d of %d servers answered, and a majority must", len(cards), len(r.nodes)), err)
		case names[""] == len(cards):
			join, leave, rest = fresh, "", false
		case names[""] > 0:
			join, leave, rest = smallest(names), "", true
		case len(cards) == len(r.nodes):
			join, leave = smallest(names), largest(names)
		default:
			return errors.Join(errors.New("the servers have not agreed on a set before, and all of them must answer for that"), err)
		}
	}
	return errors.New("the servers do not agree on a set yet")
}

func count(cards []card) (most string, names map[string]int) {
	names = make(map[string]int)
	for _, c := range cards {
		names[c.set]++
		if c.set != "" && names[c.set] > names[most] || most == "" {
			most = c.set
		}
	}
	if most == "" {
		return "none", names
	}
	return most, names
}

func sorted(names map[string]int) []string {
	var all []string
	for name := range names {
		if name != "" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func smallest(names map[string]int) string { return sorted(names)[0] }
func largest(names map[string]int) string  { all := sorted(names); return all[len(all)-1] }

// introduce asks all servers who they are, and lets those that are in no set join
// one. The error is that of the servers that are missing among the cards.
func (r *Redlock) introduce(ctx context.Context, join, leave string, rest bool) (cards []card, err error) {
	replies := broadcast(ctx, r, r.nodes, func(ctx context.Context, n *node) (card, error) {
		return n.introduce(ctx, join, leave, rest)
	})
	gather(ctx, r, replies, len(r.nodes), func(rep reply[card]) bool {
		if rep.err != nil {
			err = errors.Join(err, rep.err)
		} else {
			cards = append(cards, rep.value)
		}
		return true
	})
	return cards, err
}

func (n *node) introduce(ctx context.Context, join, leave string, rest bool) (card, error) {
	r := n.redlock
	run, err := n.look(ctx)
	if err != nil {
		return card{}, err
	}
	ms := int64(0)
	if rest {
		ms = r.rest.Milliseconds()
	}
	k := newRedlockKeys(r.prefix, "")
	reply, err := n.run(ctx, redlockJoin, []string{k.set(), k.node(), k.rest()}, rand.Text(), join, leave, ms)
	if err != nil {
		return card{}, err
	}
	if len(reply) == 2 {
		id, ok := reply[0].(string)
		set, ok2 := reply[1].(string)
		if ok && ok2 {
			return card{node: n, run: run, id: id, set: set}, nil
		}
	}
	return card{}, fmt.Errorf("the join script replied %s", shown(reply))
}

// look asks a server for its version and settings, with one INFO.
func (n *node) look(ctx context.Context) (run string, err error) {
	log := n.redlock.log.With("server", n.number())
	info, err := n.client.Info(ctx).Result()
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"), redis.HasErrorPrefix(err, unknownCommand):
		log.Debug("redislock: the server does not tell its version and settings", "reason", err)
		return "", nil
	case err != nil:
		return "", fmt.Errorf("ask for its version (INFO): %w", err)
	}
	fields := parseInfo(info)
	if err := checkVersion(fields["redis_version"]); err != nil {
		return "", err
	}
	if policy := fields["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		log.Warn("redislock: the server may evict held locks; set maxmemory-policy to noeviction", "maxmemory-policy", policy)
	}
	if fields["aof_enabled"] == "0" {
		log.Warn("redislock: the server forgets when it ends; set appendonly to yes and appendfsync to always")
	}
	return fields["run_id"], nil
}

// twice returns an error over locks.ErrBadOption if two of the cards are of one
// server.
func twice(cards []card) error {
	for i, a := range cards {
		for _, b := range cards[:i] {
			if a.id == b.id || a.run != "" && a.run == b.run {
				first, second := min(a.node.number(), b.node.number()), max(a.node.number(), b.node.number())
				return badOption(fmt.Errorf("servers %d and %d are one; list each server once, because two databases "+
					"of one server fail together", first, second))
			}
		}
	}
	return nil
}

// meet makes sure that the server belongs to the set. It costs nothing once it
// has been met.
func (n *node) meet(ctx context.Context) error {
	r := n.redlock
	if n.met.Load() {
		return nil
	}
	c, err := n.introduce(ctx, *r.set.Load(), "", true)
	if err != nil {
		return err
	}
	if c.set != *r.set.Load() {
		return n.stranger(c.set)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cards = append(slices.DeleteFunc(r.cards, func(old card) bool { return old.node == n }), c)
	if err := twice(r.cards); err != nil {
		r.misfit.Store(&err)
		return err
	}
	n.met.Store(true)
	return nil
}

// stranger is the error of a server of another set.
func (n *node) stranger(set any) error {
	n.met.Store(false)
	err := badOption(fmt.Errorf("it belongs to the set %v and the others to %s; list the same servers in every client, "+
		"or delete the key %q of a server that is to change sets", set, *n.redlock.set.Load(), newRedlockKeys(n.redlock.prefix, "").set()))
	if n.strange.CompareAndSwap(false, true) {
		n.redlock.log.Warn("redislock: a server is not used", "server", n.number(), "error", err)
	}
	return err
}

// failures joins the errors of servers into that of an operation, over
// locks.ErrUnreachable unless all of them say the same other thing.
func (r *Redlock) failure(op, name string, errs []error) error {
	err := errors.Join(errs...)
	kind := locks.ErrUnreachable
	for _, k := range []error{locks.ErrUnsupported, locks.ErrBadOption, locks.ErrClosed} {
		n := 0
		for _, e := range errs {
			if errors.Is(e, k) {
				n++
			}
		}
		if n > 0 && n == len(errs) {
			kind = k
		}
	}
	return &locks.Error{Op: op, Name: name, Kind: kind, Err: err}
}
