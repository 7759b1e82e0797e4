package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
)

// The servers of a set agree on its name, which is part of every token's lineage.
//
// A name is chosen once, by bids. The first client makes a random bid, or that of
// any server that has one already, on each server that has none. A bid that a
// majority has is the name. Clients that do so at once may leave several bids, and
// none on a majority; once all servers have one, whoever sees that moves the others
// to the smallest. A bid that has a majority is never moved, because then no client
// sees anything else; and one that is not the smallest never gets a majority.
//
// The name is then kept by each server. One that has none, because it was away or
// has lost its data, joins a set that a majority of the listed servers is in.

// card is how a server introduces itself.
type card struct {
	node *node
	run  string // changes when the server is started; empty if it does not tell
	id   string // is kept with its data
	set  string // empty: none
	bid  string // empty: none
}

// motion is what a server is asked to do as it introduces itself: see the script.
type motion struct{ offer, outbid, join string }

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
	var m motion
	again := true
	for range len(r.nodes) + 4 {
		cards, away := r.introduce(ctx, m)
		if err := twice(cards); err != nil {
			r.misfit.Store(&err)
			return err
		}
		name, next, err := r.decide(cards, fresh)
		switch {
		case err != nil && again && slices.ContainsFunc(cards, func(c card) bool { return c.set != "" }):
			// Its bids were there before that server joined it, but others may
			// have been looked at before that.
			m, again = motion{}, false
		case err != nil:
			return inOrder([]error{err, away})
		case name == "":
			m = next
		case next.join != "" && m.join == "":
			m = next
		default:
			return r.found(name, cards)
		}
	}
	return errors.New("the servers do not agree on a set yet")
}

// decide returns the set's name if a majority is in it; or the name and what to ask
// of the servers if it is known; or what to ask so that it is.
func (r *Redlock) decide(cards []card, fresh string) (name string, next motion, err error) {
	sets, bids := make(map[string]int), make(map[string]int)
	for _, c := range cards {
		sets[c.set]++
		bids[c.bid]++
	}
	inSet, bid := most(sets), most(bids)
	switch {
	case sets[inSet] >= r.majority() && inSet != "":
		return inSet, motion{}, nil
	case len(cards) < r.majority():
		return "", motion{}, fmt.Errorf("%d of %d servers answered, and a majority must", len(cards), len(r.nodes))
	case bids[bid] >= r.majority() && bid != "" && (inSet == "" || len(names(sets)) == 1 && inSet == bid):
		return bid, motion{join: bid}, nil
	case inSet != "" && len(cards) == len(r.nodes):
		return "", motion{}, badOption(fmt.Errorf("no majority of the servers is in one set, but some are in %s; list the same servers in every client, "+
			"or delete the key %q of a server that is to change sets", strings.Join(names(sets), " and in "), r.setKeys().set()))
	case inSet != "":
		return "", motion{}, errors.New("no majority of the servers that answered is in one set")
	case bids[""] > 0 && len(names(bids)) == 0:
		return "", motion{offer: fresh}, nil
	case bids[""] > 0:
		return "", motion{offer: names(bids)[0]}, nil
	case len(cards) == len(r.nodes):
		all := names(bids)
		return "", motion{offer: all[0], outbid: all[len(all)-1]}, nil
	}
	return "", motion{}, errors.New("the servers have not become a set before, and for that all of them must answer")
}

// names are the names that were counted, in order, without that of none.
func names(counted map[string]int) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(counted)), func(name string) bool { return name == "" })
}

// most is the name that was counted most often, or "".
func most(counted map[string]int) (name string) {
	for _, n := range names(counted) {
		if name == "" || counted[n] > counted[name] {
			name = n
		}
	}
	return name
}

// found makes name the set.
func (r *Redlock) found(name string, cards []card) error {
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
			c.node.met.Store(&c.id)
		}
	}
	return nil
}

// introduce asks all servers who they are. The error is that of the servers that
// are missing among the cards.
func (r *Redlock) introduce(ctx context.Context, m motion) (cards []card, err error) {
	replies := broadcast(ctx, r, r.nodes, func(ctx context.Context, n *node) (card, error) { return n.introduce(ctx, m) })
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

func (n *node) introduce(ctx context.Context, m motion) (card, error) {
	r := n.redlock
	run, err := n.look(ctx)
	if err != nil {
		return card{}, err
	}
	k := r.setKeys()
	reply, err := n.run(ctx, redlockJoin, []string{k.set(), k.node(), k.bid(), k.rest()}, rand.Text(), m.offer, m.outbid, m.join, r.rest.Milliseconds())
	if err != nil {
		return card{}, err
	}
	if len(reply) == 3 {
		id, ok := reply[0].(string)
		set, ok2 := reply[1].(string)
		bid, ok3 := reply[2].(string)
		if ok && ok2 && ok3 {
			return card{node: n, run: run, id: id, set: set, bid: bid}, nil
		}
	}
	return card{}, fmt.Errorf("the join script replied %s", shown(reply))
}

// setKeys are the keys that all locks share.
func (r *Redlock) setKeys() redlockKeys { return newRedlockKeys(r.prefix, "") }

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

func (c card) same(other card) bool {
	return c.id == other.id || c.run != "" && c.run == other.run
}

// twice returns an error over locks.ErrBadOption if two of the cards are of one
// server.
func twice(cards []card) error {
	for i, a := range cards {
		for _, b := range cards[:i] {
			if a.same(b) {
				first, second := min(a.node.number(), b.node.number()), max(a.node.number(), b.node.number())
				return badOption(fmt.Errorf("servers %d and %d are one; list each server once, because two databases "+
					"of one server fail together", first, second))
			}
		}
	}
	return nil
}

// failures joins the errors of servers into that of an operation, over
// locks.ErrUnreachable unless all of them say the same other thing.
func (r *Redlock) failure(op, name string, errs []error) error {
	err := inOrder(errs)
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

// several are the errors of several servers, on one line.
type several []error

func (s several) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (s several) Unwrap() []error { return s }

// inOrder is the errors of servers as one error, or nil. They came as the servers
// replied, and are shown in the order of their texts, which begin with the number.
func inOrder(errs []error) error {
	all := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
	return several(all)
}
