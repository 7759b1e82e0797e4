package redlock_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/tests/redlock/model"
	"github.com/fencedkv/fencedkv/tests/servers"
)

var traceSeed = flag.Uint64("trace-seed", 0, "seed of the random traces; 0 is a random one")

// A trace is some requests of four attempts to one server, in any order and with
// whatever numbers. The node step of the model and the package's scripts on a real
// server must reply the same and keep the same:
//
//   - takes, with floors and clocks on both sides of the counter
//   - confirmations with the number that was given, that is now there, and others
//   - renewals and repairs with tokens around the counter
//   - releases, with and without shutting out late copies
//   - the end of a lock's time, and the loss of a counter
//
// What the server keeps must have an end.
const (
	traces      = 10_000
	traceLength = 12
	traceIDs    = 4
)

func TestScriptsAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	seed := *traceSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -args -trace-seed=%d", seed)
	player := newTracePlayer(t, rand.New(rand.NewPCG(seed, 0)))
	for n := 0; n < traces && !t.Failed(); n += 100 {
		player.play(t, n, 100)
	}
	for status, n := range player.seen {
		if n < traces/100 {
			t.Errorf("the reply %s came %d times: the traces hardly reach it", status, n)
		}
	}
	if want := 21; len(player.seen) != want {
		t.Errorf("the traces met %d kinds of replies, want %d: %v", len(player.seen), want, player.seen)
	}
}

type tracePlayer struct {
	random  *rand.Rand
	client  *redis.Client
	scripts map[string]*redis.Script
	prefix  string
	base    uint64         // all numbers are a little above it
	seen    map[string]int // replies, by the request
}

func newTracePlayer(t *testing.T, random *rand.Rand) *tracePlayer {
	t.Helper()
	p := &tracePlayer{
		random:  random,
		client:  newClient(t, servers.SharedRedis(t)),
		scripts: make(map[string]*redis.Script),
		prefix:  space(),
		base:    uint64(time.Now().UnixMicro()),
		seen:    make(map[string]int),
	}
	texts := readScripts(t)
	for _, shape := range []string{takeScript, confirmScript, renewScript, releaseScript} {
		p.scripts[shape] = texts.withClock(t, shape, p.prefix+"clock")
		if err := p.scripts[shape].Load(t.Context(), p.client).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.client.MSet(t.Context(), p.prefix+"set", "one set", p.prefix+"node", "one server").Err(); err != nil {
		t.Fatal(err)
	}
	return p
}

// tracePoint is one request with what the model says.
type tracePoint struct {
	command model.Command
	reply   model.Reply
	after   model.Node
}

func (p *tracePlayer) trace() (points []tracePoint) {
	var n model.Node
	for range traceLength {
		c := p.command(n)
		after, reply := model.Step(n, c)
		points = append(points, tracePoint{c, reply, after})
		p.seen[fmt.Sprint(c.Op, " ", reply.Status)]++
		n = after
	}
	return points
}

// command is any, more often than not one that fits the state.
func (p *tracePlayer) command(n model.Node) model.Command {
	near := func() uint64 { return p.base + p.random.Uint64N(20) }
	number := func() uint64 {
		if n.Count > 0 && p.random.IntN(3) > 0 {
			return n.Count + p.random.Uint64N(3) - 1
		}
		return near()
	}
	c := model.Command{
		ID:    uint8(1 + p.random.IntN(traceIDs)),
		Now:   near(),
		Floor: near(),
		Bound: p.random.Uint64N(6),
		Given: number(),
		Token: number(),
	}
	if n.Owner != 0 && p.random.IntN(2) == 0 {
		c.ID = n.Owner
	}
	switch p.random.IntN(16) {
	case 0, 1, 2, 3:
		c.Op = model.Take
	case 4, 5, 6:
		c.Op = model.Confirm
		if p.random.IntN(2) == 0 {
			c.Given = n.Count
		}
	case 7, 8:
		c.Op = model.Renew
	case 9, 10:
		c.Op = model.Repair
	case 11, 12:
		c.Op = model.Release
	case 13:
		c.Op = model.Shut
	case 14:
		c.Op = model.Expire
	default:
		c.Op = model.Expire
		if p.random.IntN(4) == 0 {
			c.Op = model.Forget
		}
	}
	return c
}

// play sends some traces at once and compares.
func (p *tracePlayer) play(t *testing.T, first, n int) {
	t.Helper()
	ctx := t.Context()
	pipe := p.client.Pipeline()
	var check []func() string
	for i := first; i < first+n; i++ {
		base := fmt.Sprintf("%s%d:", p.prefix, i)
		var before model.Node
		for at, point := range p.trace() {
			got := p.send(pipe, base, point.command)
			kept := pipe.MGet(ctx, base+"lock", base+"count")
			var gone *redis.IntCmd // what is shut out stays so, and is looked at once
			var lasts []*redis.DurationCmd
			if at == traceLength-1 {
				gone = pipe.Exists(ctx, base+"gone"+id(1), base+"gone"+id(2), base+"gone"+id(3), base+"gone"+id(4))
				lasts = append(lasts, pipe.PTTL(ctx, base+"lock"), pipe.PTTL(ctx, base+"count"))
			}
			was := before
			before = point.after
			check = append(check, func() string {
				want := fmt.Sprint(replyText(point), "; ", nodeText(point.after, gone != nil))
				real := fmt.Sprint(realReply(got, point.command), "; ", realNode(kept, gone))
				for _, left := range lasts {
					if left.Val() == -1 {
						real += ", and keeps something for ever"
					}
				}
				if real == want {
					return ""
				}
				return fmt.Sprintf("trace %d, request %d, %+v, on %s:\n\tserver: %s\n\tmodel:  %s", i, at, point.command, nodeText(was, true), real, want)
			})
		}
		pipe.Del(ctx, base+"lock", base+"count", base+"gone"+id(1), base+"gone"+id(2), base+"gone"+id(3), base+"gone"+id(4))
	}
	_, _ = pipe.Exec(ctx) // each reply is looked at
	for _, differs := range check {
		if text := differs(); text != "" {
			t.Fatal(text)
		}
	}
}

// send puts a request into the pipeline as the package would send it.
func (p *tracePlayer) send(pipe redis.Pipeliner, base string, c model.Command) *redis.Cmd {
	ctx := context.Background()
	me := id(c.ID)
	lock, count, gone := base+"lock", base+"count", base+"gone"+me
	hour := time.Hour.Milliseconds()
	run := func(shape string, keys []string, args ...any) *redis.Cmd {
		return p.scripts[shape].EvalSha(ctx, pipe, keys, append(args, "request")...)
	}
	switch c.Op {
	case model.Take:
		pipe.HSet(ctx, p.prefix+"clock", "s", c.Now/1e6, "us", c.Now%1e6)
		return run(takeScript, []string{lock, count, base + "queue", gone, p.prefix + "set", p.prefix + "rest", p.prefix + "node"},
			me, hour, c.Floor, c.Bound, "one set", "", 0, hour, hour, "one server")
	case model.Confirm:
		return run(confirmScript, []string{lock, count}, me, c.Given, c.Token, hour)
	case model.Renew, model.Repair:
		repair := 0
		if c.Op == model.Repair {
			repair = 1
		}
		return run(renewScript, []string{lock, count, gone, p.prefix + "node"}, me, c.Token, hour, repair, "one server")
	case model.Release, model.Shut:
		shut := int64(0)
		if c.Op == model.Shut {
			shut = hour
		}
		return run(releaseScript, []string{lock, count, base + "queue", gone}, me, shut, "", "")
	case model.Expire:
		return pipe.Do(ctx, "DEL", lock)
	default:
		return pipe.Do(ctx, "DEL", count)
	}
}

func id(n uint8) string { return fmt.Sprint("attempt", n) }

func replyText(p tracePoint) string {
	switch {
	case p.command.Op == model.Expire || p.command.Op == model.Forget:
		return "done"
	case p.reply.Status == model.Granted:
		return fmt.Sprint(p.reply.Status, " ", p.reply.Number)
	}
	return string(p.reply.Status)
}

func realReply(cmd *redis.Cmd, c model.Command) string {
	reply, err := cmd.Slice()
	switch {
	case c.Op == model.Expire || c.Op == model.Forget:
		return "done"
	case err != nil:
		return err.Error()
	case len(reply) < 2 || reply[len(reply)-1] != "request":
		return fmt.Sprint(reply)
	case reply[0] == "granted":
		return fmt.Sprint(reply[0], " ", reply[1])
	}
	return fmt.Sprint(reply[0])
}

func nodeText(n model.Node, withGone bool) string {
	lock, count, gone := "free", "none", 0
	if n.Owner != 0 {
		lock = id(n.Owner)
	}
	if n.Count > 0 {
		count = fmt.Sprint(n.Count, " ", id(n.Last))
		if n.Released {
			count += " released"
		}
	}
	text := fmt.Sprintf("lock %s, counter %s", lock, count)
	if withGone {
		for i := range traceIDs {
			gone += int(n.Gone >> i & 1)
		}
		text += fmt.Sprintf(", %d shut out", gone)
	}
	return text
}

func realNode(kept *redis.SliceCmd, gone *redis.IntCmd) string {
	values := kept.Val()
	if len(values) != 2 {
		return fmt.Sprint("no answer: ", kept.Err())
	}
	for i, none := range []string{"free", "none"} {
		if values[i] == nil {
			values[i] = none
		}
	}
	text := fmt.Sprintf("lock %s, counter %s", values[0], values[1])
	if gone != nil {
		text += fmt.Sprintf(", %d shut out", gone.Val())
	}
	return text
}
