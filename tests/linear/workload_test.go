package linear_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/tests/internal/history"
)

const (
	clients = 6
	each    = 16 // operations of a client
)

// workload makes operations. Which numbers its tokens have depends on the
// moment, the rest on the seed.
type workload struct {
	seed  uint64
	phase int // makes clients and values of its own
	next  [history.Resources]atomic.Uint64
}

// named is a token as a lock service gives it: one number, one holder.
func named(seq uint64) fence.Token {
	return fence.Token{Lineage: "l", Seq: seq, Holder: fmt.Sprint("holder-", seq)}
}

// token is mostly near the highest so far, and now and then of another kind.
func (w *workload) token(rnd *rand.Rand, resource int) fence.Token {
	if rnd.IntN(6) == 0 {
		return named(w.next[resource].Add(1))
	}
	highest := w.next[resource].Load()
	t := named(highest - min(highest-1, uint64(rnd.IntN(4)/2)))
	switch rnd.IntN(24) {
	case 0:
		t.Lineage = "m"
	case 1, 2:
		t.Holder = "another"
	case 3:
		t = fence.Token{}
	}
	return t
}

var weights = []string{
	history.Raise, history.Put, history.Put, history.Put, history.Delete, history.Update, history.Update, history.Update, history.Fails, history.Panics,
	history.Move, history.Move, history.Get, history.Get, history.Highest, history.View,
}

func (w *workload) operation(rnd *rand.Rand, client, n int) history.Operation {
	o := history.Operation{
		Kind:     weights[rnd.IntN(len(weights))],
		Resource: rnd.IntN(history.Resources), Key: rnd.IntN(history.Keys),
		Value: fmt.Sprintf("%d-%d-%d", w.phase, client, n),
	}
	if o.Kind == history.Move {
		o.Resource, o.Other = rnd.IntN(history.Resources-1), history.Resources-1
		o.OtherToken = w.token(rnd, o.Other)
	}
	if o.Writes() {
		o.Token = w.token(rnd, o.Resource)
		o.Cancelled = rnd.IntN(16) == 0
	}
	return o
}

// prologue gives each history its refusals: after a holder has raised the mark,
// another one with its number and the one before it come.
func (w *workload) prologue(resource int) []history.Operation {
	seq := w.next[resource].Add(2)
	value := func(n int) string { return fmt.Sprintf("%d-prologue-%d-%d", w.phase, resource, n) }
	other := named(seq)
	other.Holder = "another"
	return []history.Operation{
		{Kind: history.View, Resource: resource},
		{Kind: history.Raise, Resource: resource, Token: named(seq)},
		{Kind: history.Put, Resource: resource, Token: other, Value: value(0)},
		{Kind: history.Put, Resource: resource, Token: named(seq - 1), Value: value(1)},
		{Kind: history.Update, Resource: resource, Token: named(seq), Value: value(2)},
		{Kind: history.View, Resource: resource},
	}
}

// recorder takes the events of concurrent clients in order.
type recorder func(history.Event)

// perform records an operation around its call.
func (w *workload) perform(ctx context.Context, s history.Subject, record recorder, client int, o history.Operation) history.Result {
	record(history.Event{Client: client, Begin: true, Op: o})
	runtime.Gosched() // let others begin: on few cores a quick call ends before the next one starts
	r := s.Perform(ctx, o)
	record(history.Event{Client: client, Result: r})
	return r
}

// run makes the calls of a phase: the prologue, then all clients at once.
func (w *workload) run(ctx context.Context, s history.Subject, record recorder) {
	first := w.phase * (clients + 1)
	for r := range history.Resources {
		for _, o := range w.prologue(r) {
			w.perform(ctx, s, record, first, o)
		}
	}
	start := make(chan struct{})
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(w.seed, uint64(first+1+c)))
			<-start
			for n := range each {
				r := w.perform(ctx, s, record, first+1+c, w.operation(rnd, c, n))
				if r.Outcome == history.Unknown {
					return // a client that does not know is another client from then on
				}
			}
		})
	}
	close(start)
	all.Wait()
}

// memory is a recorder that keeps the history.
type memory struct {
	mu     sync.Mutex
	events history.Events
}

func (m *memory) record(e history.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
}
