package redislock

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
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
	//go:embed verify.lua
	verifyLua string

	takeScript     = newScript(takeLua)
	renewScript    = newScript(renewLua)
	releaseScript  = newScript(releaseLua)
	withdrawScript = newScript(withdrawLua)
	verifyScript   = newScript(verifyLua)
)

// newScript makes the script of a body that replies with an array. The script
// adds its last argument, the number of the request, which own looks for.
//
// What the scripts share is where they need it, so that one which does not come
// there does not make its functions: they are made anew each time that a script runs.
func newScript(body string) *redis.Script {
	body = strings.Replace(body, "-- include waiters.lua\n", waitersLua, 1)
	return redis.NewScript("local function reply()\n" + body +
		"\nend\nlocal array = reply()\narray[#array + 1] = ARGV[#ARGV]\nreturn array\n")
}

// run sends a script with a number for this request and returns its reply.
func (l *Locker) run(ctx context.Context, script *redis.Script, keys []string, args ...any) ([]any, error) {
	number := l.number()
	reply, err := script.Run(ctx, l.client, keys, append(args, number)...).Slice()
	if err != nil {
		return nil, err
	}
	return own(reply, number)
}

// number is unique among the requests of all Lockers that share a client.
func (l *Locker) number() string {
	return l.tag + "." + strconv.FormatUint(l.asked.Add(1), 10)
}

// own returns what the script replied if it replied to the request with this
// number. A client that leaves a reply unread on a pooled connection, as clients
// have done after a timeout, takes it for the reply to its next request: then one
// holder would get another's number, and a renewal that never came would count.
func own(reply []any, number string) ([]any, error) {
	if n := len(reply) - 1; n >= 0 && reply[n] == number {
		return reply[:n], nil
	}
	return nil, fmt.Errorf("the reply %s belongs to another request than %s; make a new client if this does not end", shown(reply), number)
}

// shown returns a reply as messages show it: texts in quotes, numbers as they are.
func shown(reply []any) string {
	parts := make([]string, len(reply))
	for i, v := range reply {
		if s, ok := v.(string); ok {
			parts[i] = strconv.Quote(s)
		} else {
			parts[i] = fmt.Sprint(v)
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// answer is what the take script said.
type answer struct {
	status  string        // "granted", "held", "over"
	number  string        // granted: the number, as the server wrote it
	seq     uint64        // granted: the same
	left    time.Duration // held: until the lock or its reservation runs out; negative if it never does
	rank    int           // held: how many look after the lock before this one does
	arrival string        // held: the place among the waiters, which the next take names
	missed  bool          // held: it was no longer among the waiters
}

func (l *Locker) take(ctx context.Context, k keys, id, arrival string, patience time.Duration) (answer, error) {
	args := []any{id, l.channels, l.claim.Milliseconds(), l.ttl.Milliseconds(), patience.Milliseconds(), arrival}
	if l.replicas == 0 {
		return parseTake(l.run(ctx, takeScript, k.with(id), args...))
	}
	return l.takeAndWait(ctx, k, id, args)
}

// takeAndWait sends the script and WAIT in one pipeline.
func (l *Locker) takeAndWait(ctx context.Context, k keys, id string, args []any) (answer, error) {
	node, err := l.node(ctx, k)
	if err != nil {
		return answer{}, err
	}
	number := l.number()
	args = append(args, number)
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
		reply, takeErr := script.Slice()
		if takeErr == nil {
			reply, takeErr = own(reply, number)
		}
		a, takeErr := parseTake(reply, takeErr)
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
	case len(reply) == 4 && (reply[0] == "held" || reply[0] == "missed"):
		left, ok := reply[1].(int64)
		rank, ok2 := reply[2].(int64)
		arrival, ok3 := reply[3].(string)
		if ok && ok2 && ok3 {
			return answer{
				status: "held", left: time.Duration(left) * time.Millisecond, rank: int(rank),
				arrival: arrival, missed: reply[0] == "missed",
			}, nil
		}
	}
	return a, fmt.Errorf("the take script replied %s", shown(reply))
}

// renew returns an error over locks.ErrLost if the grant is not there.
func (l *Locker) renew(ctx context.Context, k keys, grant string) error {
	_, err := call(ctx, l, func(ctx context.Context) (struct{}, error) {
		reply, err := l.run(ctx, renewScript, []string{k.lock(), k.last()}, grant, l.ttl.Milliseconds())
		switch {
		case err != nil:
		case len(reply) == 1 && reply[0] == int64(0):
			err = errNotThere
		case len(reply) != 1 || reply[0] != int64(1):
			err = fmt.Errorf("the renew script replied %s", shown(reply))
		}
		return struct{}{}, err
	})
	return err
}

// release frees the lock, or reserves it for the first waiter and wakes that.
func (l *Locker) release(ctx context.Context, k keys, grant string) error {
	_, err := call(ctx, l, func(ctx context.Context) (struct{}, error) {
		reply, err := l.run(ctx, releaseScript, k.shared(), grant, l.channels, l.claim.Milliseconds())
		if err != nil {
			return struct{}{}, err
		}
		if len(reply) != 2 {
			return struct{}{}, fmt.Errorf("the release script replied %s", shown(reply))
		}
		l.untold(reply[1])
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
		reply, err := l.run(ctx, withdrawScript, k.with(id), id, l.channels, l.claim.Milliseconds(), l.shutOut.Milliseconds())
		if err != nil {
			return false, err
		}
		if len(reply) != 2 {
			return false, fmt.Errorf("the withdraw script replied %s", shown(reply))
		}
		l.untold(reply[1])
		return reply[0] == int64(1), nil
	})
}

// untold warns once that waiters are not told of releases.
func (l *Locker) untold(reply any) {
	if why, _ := reply.(string); why != "" {
		l.noPublish.Do(func() {
			l.log.Warn("redislock: waiters are not told of a release and poll instead", "reason", why)
		})
	}
}

var errNotThere = fmt.Errorf("%w: the server has no such grant", locks.ErrLost)
