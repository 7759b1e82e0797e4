package prove_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/rpc"
	"os"
	"strconv"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/history"
)

// clientConfig is what a client process needs to know.
type clientConfig struct {
	Client   int
	Seed     uint64
	Resource string // the address of the process of the counter
	Lock     service
}

const (
	lockName = "counter"

	// computing is how long a client computes at most: longer than the service
	// takes to hand the lock over, so that most stops of a holder hit it there.
	computing = 20 * time.Millisecond

	// starving is how long a client that gets no lock takes it for bad luck.
	starving = time.Minute
)

// client adds one to the counter again and again.
type client struct {
	caller
	locker locks.Locker
	rnd    *rand.Rand
}

// runClient adds to the counter until ctx ends, and tells its calls to its
// standard output.
func runClient(ctx context.Context, config clientConfig) error {
	conn, err := rpc.Dial("tcp", config.Resource)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	locker, err := config.Lock.open()
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), ttl)
		defer cancel()
		_ = locker.Close(closing) // what it leaves runs out
	}()
	c := &client{
		caller: caller{client: config.Client, conn: conn, record: tellTo(os.Stdout)},
		locker: locker,
		rnd:    rand.New(rand.NewPCG(config.Seed, uint64(config.Client))),
	}
	for granted := time.Now(); ctx.Err() == nil; {
		lease, err := locker.Acquire(ctx, lockName)
		switch {
		case err == nil:
			err = c.increment(ctx, lease)
			_ = lease.Release(context.Background()) // it may be lost, which is what this is about
			if err != nil {
				return err
			}
			granted = time.Now()
		case ctx.Err() == nil && time.Since(granted) > starving:
			return fmt.Errorf("no lock in %v: %w", starving, err)
		default:
			passes(ctx, computing)
		}
	}
	return nil
}

// increment is one attempt to add one to the counter. It does not end early
// when the lease does, but for the one look that a careful program takes.
func (c *client) increment(ctx context.Context, lease *locks.Lease) error {
	token := lease.Token()
	if r, err := c.call(history.Operation{Kind: history.Raise, Token: token}); err != nil || r.Outcome == history.Refused {
		return err
	}
	r, err := c.call(history.Operation{Kind: history.Get})
	if err != nil {
		return err
	}
	n, err := count(r)
	if err != nil {
		return err
	}
	if good := lease.Context().Err() == nil; !good {
		return nil
	}
	passes(ctx, time.Duration(c.rnd.Int64N(int64(computing))))
	return c.write(token, n+1)
}

func (c *client) write(token fence.Token, n int) error {
	_, err := c.call(history.Operation{Kind: history.Put, Token: token, Value: strconv.Itoa(n)})
	return err
}

// count is the counter that a call has read.
func count(r history.Result) (int, error) {
	if r.Outcome != history.Done {
		return 0, fmt.Errorf("the counter cannot be read: %+v", r)
	}
	if r.Values[0] == "" {
		return 0, nil
	}
	return strconv.Atoi(r.Values[0])
}

// tellTo records events in the pipe that all processes share. A write of up to
// mostAtomic bytes is atomic, so that the order in the pipe is the order in
// which the events happened.
func tellTo(pipe *os.File) func(history.Event) error {
	return func(e history.Event) error {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if line = append(line, '\n'); len(line) > mostAtomic {
			return errors.New("an event is too long for the pipe: " + string(line))
		}
		_, err = pipe.Write(line)
		return err
	}
}

// mostAtomic is PIPE_BUF of Linux.
const mostAtomic = 4096
