package prove_test

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"os"
	"sync"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/tests/internal/history"
)

// resourceConfig is what the process of the counter needs to know. It gets its
// listener as descriptor 3.
type resourceConfig struct {
	Path string // of the store; without one the counter is in a plain map
}

// runResource serves the counter until ctx ends.
func runResource(ctx context.Context, c resourceConfig) (err error) {
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	var subject history.Subject = &plain{values: map[int]string{}}
	if c.Path != "" {
		store, err := fencedkv.Open(c.Path, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Check(context.Background()), store.Close()) }()
		subject = history.Store{Store: store}
	}
	srv := rpc.NewServer()
	if err := srv.RegisterName(served, &Counter{subject}); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go srv.ServeConn(conn)
	}
}

// served is the name of the one thing that the process serves.
const served = "Counter"

// Counter is what the process serves. There is no time-out anywhere: each call
// has a definite outcome, however long its client is stopped.
type Counter struct{ subject history.Subject }

// Perform makes the call o.
func (c *Counter) Perform(o history.Operation, r *history.Result) error {
	*r = c.subject.Perform(context.Background(), o)
	return nil
}

// plain is a store as any without fencing: it takes whatever comes.
type plain struct {
	mu     sync.Mutex
	values map[int]string
}

// Perform implements history.Subject.
func (p *plain) Perform(_ context.Context, o history.Operation) history.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := history.Result{Outcome: history.Done}
	switch o.Kind {
	case history.Get:
		r.Values[o.Key] = p.values[o.Key]
	case history.Put:
		p.values[o.Key] = o.Value
	}
	return r
}

// caller calls the process of the counter, and records each call.
type caller struct {
	client int
	conn   *rpc.Client
	record func(history.Event) error
}

func (c *caller) call(o history.Operation) (r history.Result, err error) {
	if err := c.record(history.Event{Client: c.client, Begin: true, Op: o}); err != nil {
		return r, err
	}
	if err := c.conn.Call(served+".Perform", o, &r); err != nil {
		r = history.Result{Outcome: history.Unknown, Detail: err.Error()}
	}
	return r, c.record(history.Event{Client: c.client, Result: r})
}
