package linear_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/tests/internal/history"
)

// toy is a store in memory that crashes: after so many writes the next ones hang
// in their commit, and end with the crash.
type toy struct {
	mu      sync.Mutex
	visible history.State
	durable history.State
	writes  int // that still commit before the crash; negative: no end
	crashed chan struct{}
	hanging func() // a call hangs
	flaw    flaw
}

type flaw int

const (
	sound         flaw = iota
	forgetsMarks       // a mark is not durable
	admitsEqual        // an equal token of another holder is admitted
	readsTooEarly      // a read returns what is not durable yet
)

func (s *toy) Perform(_ context.Context, o history.Operation) history.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flaw == admitsEqual {
		if m := s.visible[o.Resource].Mark; o.Token.Seq == m.Seq && o.Token.Lineage == m.Lineage {
			o.Token = m
		}
	}
	r, next := history.Respond(s.visible, o)
	if next == s.visible {
		return r
	}
	if s.writes == 0 {
		if s.flaw == readsTooEarly {
			s.visible = next
		}
		s.hanging()
		s.mu.Unlock()
		<-s.crashed
		s.mu.Lock()
		return history.Result{Outcome: history.Unknown}
	}
	s.writes--
	s.visible, s.durable = next, next
	return r
}

// crash ends the calls that hang and returns what the next process finds.
func (s *toy) crash() *toy {
	close(s.crashed)
	next := &toy{visible: s.durable, durable: s.durable, writes: -1, flaw: s.flaw}
	if s.flaw == forgetsMarks {
		for r := range history.Resources {
			next.visible[r].Mark = fence.Token{}
		}
	}
	return next
}

// crashing records a phase that ends in a crash, with a reader just before it,
// and another one after it.
func crashing(ctx context.Context, w *workload, f flaw) history.Events {
	var (
		m          memory
		busy, gone sync.WaitGroup // busy until a client hangs or is at its end
	)
	s := &toy{crashed: make(chan struct{}), flaw: f, writes: 20, hanging: busy.Done}
	for r := range history.Resources {
		for _, o := range w.prologue(r) {
			w.perform(ctx, s, m.record, 0, o)
		}
	}
	busy.Add(clients)
	for c := range clients {
		gone.Go(func() {
			rnd := rand.New(rand.NewPCG(w.seed, uint64(c)))
			for n := range each {
				if r := w.perform(ctx, s, m.record, 1+c, w.operation(rnd, c, n)); r.Outcome == history.Unknown {
					return
				}
			}
			busy.Done()
		})
	}
	busy.Wait()

	// Whatever the clients did, one write hangs that every reader would notice.
	last := history.Operation{Kind: history.Put, Token: named(w.next[0].Add(1)), Value: "last"}
	s.mu.Lock()
	s.writes = 0
	s.mu.Unlock()
	busy.Add(1)
	gone.Go(func() { w.perform(ctx, s, m.record, clients+2, last) })
	busy.Wait()
	for r := range history.Resources {
		w.perform(ctx, s, m.record, clients+1, history.Operation{Kind: history.View, Resource: r})
	}
	next := s.crash()
	gone.Wait()
	w.phase = 1
	w.run(ctx, next, m.record)
	return m.events
}

// TestBrokenStoresAreRejected shows that the checker sees what it is for. The
// sound toy shows that it is the flaw that it sees.
func TestBrokenStoresAreRejected(t *testing.T) {
	first := firstSeed(t)
	for _, c := range []struct {
		name string
		flaw flaw
		want porcupine.CheckResult
	}{
		{"sound", sound, porcupine.Ok},
		{"mark not durable", forgetsMarks, porcupine.Illegal},
		{"equal token of another holder admitted", admitsEqual, porcupine.Illegal},
		{"read before durable", readsTooEarly, porcupine.Illegal},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n := range 10 {
				h := crashing(t.Context(), &workload{seed: first + uint64(n)}, c.flaw)
				if got := history.Check(h); got != c.want {
					t.Fatalf("seed %d: the checker says %q, want %q, of this history:\n%v", first+uint64(n), got, c.want, h)
				}
			}
		})
	}
}
