package redislock

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
)

var (
	//go:embed waiters.lua
	waitersLua string
	//go:embed take.lua
	takeLua string
	//go:embed renew.lua
	renewLua string
	//go:embed release.lua
	releaseLua string
	//go:embed withdraw.lua
	withdrawLua string

	takeScript     = redis.NewScript(waitersLua + takeLua)
	renewScript    = redis.NewScript(renewLua)
	releaseScript  = redis.NewScript(waitersLua + releaseLua)
	withdrawScript = redis.NewScript(waitersLua + withdrawLua)
)

// answer is what the take script said.
type answer struct {
	status string        // "granted", "held", "over"
	number string        // granted: the number, as the server wrote it
	seq    uint64        // granted: the same
	left   time.Duration // held: until the lock runs out; negative if it never does
	rank   int           // held: how many wait longer
}

func (l *Locker) take(ctx context.Context, k keys, id string, patience time.Duration) (answer, error) {
	args := []any{id, l.ttl.Milliseconds(), patience.Milliseconds()}
	if l.replicas == 0 {
		return parseTake(takeScript.Run(ctx, l.client, k.with(id), args...).Slice())
	}
	return l.takeAndWait(ctx, k, id, args)
}

// takeAndWait sends the script and WAIT in one pipeline.
func (l *Locker) takeAndWait(ctx context.Context, k keys, id string, args []any) (answer, error) {
	node, err := l.node(ctx, k)
	if err != nil {
		return answer{}, err
	}
	run := takeScript.EvalSha
	for {
		var script *redis.Cmd
		var confirmed *redis.Cmd
		_, err := node.Pipelined(ctx, func(p redis.Pipeliner) error {
			script = run(ctx, p, k.with(id), args...)
			// 0 would be for ever.
			confirmed = p.Do(ctx, "WAIT", l.replicas, max((l.requestTimeout/2).Milliseconds(), 1))
			return nil
		})
		if redis.HasErrorPrefix(script.Err(), "NOSCRIPT") {
			run = takeScript.Eval
			continue
		}
		a, takeErr := parseTake(script.Slice())
		switch {
		case takeErr != nil:
			return a, takeErr
		case a.status != "granted":
			return a, nil
		case err != nil:
			return answer{}, fmt.Errorf("WAIT: %w", err)
		}
		if n, err := confirmed.Int(); err != nil || n < l.replicas {
			return answer{}, fmt.Errorf("%d of %d replicas confirmed the grant within %v",
				n, l.replicas, l.requestTimeout/2)
		}
		return a, nil
	}
}

func parseTake(reply []any, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	var a answer
	switch {
	case len(reply) == 1 && reply[0] == "over":
		a.status = "over"
		return a, nil
	case len(reply) == 2 && reply[0] == "used up":
		return a, &locks.Error{Op: "acquire", Kind: locks.ErrUnsupported, Err: fmt.Errorf(
			"the last number is %q, and the next must be a whole number below 2^53; delete the lock's key \"last\" to number from the clock again", reply[1])}
	case len(reply) == 2 && reply[0] == "granted":
		number, _ := reply[1].(string)
		if a.seq, err = strconv.ParseUint(number, 10, 53); err == nil && a.seq > 0 {
			a.status, a.number = "granted", number
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
	return a, fmt.Errorf("the take script replied %q", reply)
}

// renew returns an error over locks.ErrLost if the grant is not there.
func (l *Locker) renew(ctx context.Context, k keys, grant string) error {
	_, err := call(ctx, l, func(ctx context.Context) (struct{}, error) {
		found, err := renewScript.Run(ctx, l.client, []string{k.lock(), k.last()}, grant, l.ttl.Milliseconds()).Int()
		if err == nil && found == 0 {
			err = errNotThere
		}
		return struct{}{}, err
	})
	return err
}

// release frees the lock and wakes a waiter.
func (l *Locker) release(ctx context.Context, k keys, grant string) error {
	_, err := call(ctx, l, func(ctx context.Context) (struct{}, error) {
		reply, err := releaseScript.Run(ctx, l.client, k.shared(), grant, k.channel()).Slice()
		if err != nil {
			return struct{}{}, err
		}
		if len(reply) != 2 {
			return struct{}{}, fmt.Errorf("the release script replied %q", reply)
		}
		l.unheard(reply[1])
		if reply[0] != int64(1) {
			err = errNotThere
		}
		return struct{}{}, err
	})
	return err
}

// withdraw removes the traces of an attempt and tells whether another has the
// lock.
func (l *Locker) withdraw(ctx context.Context, k keys, id string) (held bool, err error) {
	return call(ctx, l, func(ctx context.Context) (bool, error) {
		reply, err := withdrawScript.Run(ctx, l.client, k.with(id), id, k.channel(), l.shutOut.Milliseconds()).Slice()
		if err != nil {
			return false, err
		}
		if len(reply) != 2 {
			return false, fmt.Errorf("the withdraw script replied %q", reply)
		}
		l.unheard(reply[1])
		return reply[0] == int64(1), nil
	})
}

// unheard warns once that waiters are not told of releases.
func (l *Locker) unheard(reply any) {
	if why, _ := reply.(string); why != "" {
		l.noPublish.Do(func() {
			l.log.Warn("redislock: waiters are not told of a release and poll instead", "reason", why)
		})
	}
}

var errNotThere = fmt.Errorf("%w: the server has no such grant", locks.ErrLost)
