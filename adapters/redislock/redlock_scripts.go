package redislock

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

var (
	//go:embed redlock_head.lua
	redlockHeadLua string
	//go:embed redlock_take.lua
	redlockTakeLua string
	//go:embed redlock_confirm.lua
	redlockConfirmLua string
	//go:embed redlock_renew.lua
	redlockRenewLua string
	//go:embed redlock_release.lua
	redlockReleaseLua string
	//go:embed redlock_read.lua
	redlockReadLua string
	//go:embed redlock_join.lua
	redlockJoinLua string

	redlockTake    = newScript(redlockHeadLua + redlockTakeLua)
	redlockConfirm = newScript(redlockHeadLua + redlockConfirmLua)
	redlockRenew   = newScript(redlockHeadLua + redlockRenewLua)
	redlockRelease = newScript(redlockHeadLua + redlockReleaseLua)
	redlockRead    = newScript(redlockReadLua)
	redlockJoin    = newScript(redlockJoinLua)
)

const (
	// floorLead is how far the number that a client proposes is ahead of its
	// clock. It covers the way to the servers and the difference of the clocks, so
	// that in step it is this number that counts.
	floorLead = 100 * time.Millisecond

	// floorBound is how far a server lets a client's clock move its counter
	// beyond its own clock.
	floorBound = time.Second
)

// nodeAnswer is what the take script of one server said.
type nodeAnswer struct {
	status string        // "granted", "held", "over"
	seq    uint64        // granted: the number
	left   time.Duration // held: until the lock runs out; negative if it never does
	rank   int           // held: how many wait longer there
}

// takeOn sends a take to one server. waiter is empty for a caller that does not
// wait.
func (r *Redlock) takeOn(ctx context.Context, n *node, k redlockKeys, id string, sent, arrival time.Time, waiter string) (nodeAnswer, error) {
	server, err := n.meet(ctx)
	if err != nil {
		return nodeAnswer{}, err
	}
	if !n.hears.Load() {
		waiter = ""
	}
	keys := []string{k.lock(), k.count(), k.queue(), k.gone(id), k.set(), k.rest(), k.node()}
	reply, err := n.run(ctx, redlockTake, keys, id, r.ttl.Milliseconds(), sent.Add(floorLead).UnixMicro(), floorBound.Microseconds(),
		*r.set.Load(), waiter, arrival.UnixMicro(), (2 * r.ttl).Milliseconds(), r.rest.Milliseconds(), server)
	if err != nil {
		return nodeAnswer{}, err
	}
	return n.parseTake(reply)
}

func (n *node) parseTake(reply []any) (nodeAnswer, error) {
	var a nodeAnswer
	switch {
	case len(reply) == 1 && reply[0] == "over":
		a.status = "over"
		return a, nil
	case len(reply) == 1 && reply[0] == "another":
		return a, n.another()
	case len(reply) == 2 && reply[0] == "stranger":
		return a, n.stranger(reply[1])
	case len(reply) == 2 && reply[0] == "resting":
		left, _ := reply[1].(int64)
		return a, fmt.Errorf("it has lost its data, and grants nothing for another %v, until what it had granted has run out",
			time.Duration(left)*time.Millisecond)
	case len(reply) == 2 && reply[0] == "used up":
		return a, &locks.Error{Op: "acquire", Kind: locks.ErrUnsupported, Err: fmt.Errorf(
			"the last number is %q, and the next must be a whole number below 2^53; delete the lock's key \"count\" to number from the clock again", reply[1])}
	case len(reply) == 2 && reply[0] == "granted":
		number, _ := reply[1].(string)
		if seq, err := strconv.ParseUint(number, 10, 53); err == nil && seq > 0 {
			a.status, a.seq = "granted", seq
			return a, nil
		}
	case len(reply) == 3 && reply[0] == "held":
		left, ok := reply[1].(int64)
		rank, ok2 := reply[2].(int64)
		if ok && ok2 {
			a.status, a.left, a.rank = "held", time.Duration(left)*time.Millisecond, int(rank)
			return a, nil
		}
	}
	return a, fmt.Errorf("the take script replied %s", shown(reply))
}

// confirmOn stores the token where another number was given, and tells whether
// the server has confirmed it.
func (r *Redlock) confirmOn(ctx context.Context, n *node, k redlockKeys, id string, given, token uint64) (bool, error) {
	reply, err := n.run(ctx, redlockConfirm, []string{k.lock(), k.count()}, id, given, token, r.ttl.Milliseconds())
	if err != nil {
		return false, err
	}
	if len(reply) != 1 {
		return false, fmt.Errorf("the confirm script replied %s", shown(reply))
	}
	return reply[0] == int64(1), nil
}

// renewOn returns "renewed", "repaired", "free", "other" or "lost": see the script.
func (r *Redlock) renewOn(ctx context.Context, n *node, k redlockKeys, id string, token uint64, repair bool) (string, error) {
	server, err := n.meet(ctx)
	if err != nil {
		return "", err
	}
	flag := 0
	if repair {
		flag = 1
	}
	reply, err := n.run(ctx, redlockRenew, []string{k.lock(), k.count(), k.gone(id), k.node()}, id, token, r.ttl.Milliseconds(), flag, server)
	if err != nil {
		return "", err
	}
	status, ok := "", len(reply) == 1
	if ok {
		status, ok = reply[0].(string)
	}
	if !ok {
		return "", fmt.Errorf("the renew script replied %s", shown(reply))
	}
	if status == "another" {
		return "", n.another()
	}
	return status, nil
}

// What the release script of one server said of the lock.
const (
	notThere = 0
	freed    = 1
	anothers = 2
)

// releaseOn frees what an attempt has on a server and takes its waiter out. shut
// keeps late copies of its requests out for a while.
func (r *Redlock) releaseOn(ctx context.Context, n *node, k redlockKeys, id, waiter string, shut bool, wakeup string) (int64, error) {
	ms := int64(0)
	if shut {
		ms = r.shutOut.Milliseconds()
	}
	reply, err := n.run(ctx, redlockRelease, []string{k.lock(), k.count(), k.queue(), k.gone(id)}, id, ms, waiter, wakeup)
	if err != nil {
		return 0, err
	}
	if len(reply) == 2 {
		if result, ok := reply[0].(int64); ok {
			n.unheard(reply[1])
			return result, nil
		}
	}
	return 0, fmt.Errorf("the release script replied %s", shown(reply))
}

func (n *node) unheard(reply any) {
	if why, _ := reply.(string); why != "" {
		n.redlock.log.Debug("redislock: waiters are not told of a release and poll instead", "server", n.number(), "reason", why)
	}
}
