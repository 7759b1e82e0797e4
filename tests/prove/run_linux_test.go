package prove_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/internal/history"
)

const (
	clients = 8

	// luckless is how much longer than asked a run may last until a stop has
	// hit a client between its read and its write.
	luckless = 2 * time.Minute
)

// outcome is what a run has shown.
type outcome struct {
	tally
	stops int
	value int // of the counter at the end
}

// lost is how many acknowledged updates are not in the counter.
func (o outcome) lost() int { return o.acknowledged - o.value }

// run has the clients add to one counter for at least the time, and until an
// update was lost, or would have been.
func run(t *testing.T, lock service, fenced bool, atLeast time.Duration, seed uint64) outcome {
	t.Helper()
	var config resourceConfig
	if fenced {
		config.Path = filepath.Join(t.TempDir(), "counter.db")
	}
	resource, address := startResource(t, config)
	conn, err := rpc.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	all := recording{open: map[int]history.Operation{}}
	// The parent's own calls go through the pipe too, into their place.
	parent := caller{conn: conn, record: tellTo(in)}
	var children []*process
	for n := 1; n <= clients; n++ {
		children = append(children, start(t, roleClient, nameOf(n),
			clientConfig{Client: n, Seed: seed, Resource: address, Lock: lock}, in))
	}
	collected := make(chan error, 1)
	go func() { collected <- all.collect(out) }()

	// A service may refuse a client that is stopped before it has connected.
	bounded.Eventually(t, "the first call of each client", func() bool { return all.seen() == clients })
	stops := disturbed(t, children, seed, func() { all.await(t, &parent, children, atLeast) })
	for _, p := range children {
		p.tellToEnd()
	}
	for _, p := range children {
		p.requireEnd(t)
	}
	value := parent.count(t)
	in.Close() // which ends the pipe: nobody else has it any more
	if err := <-collected; err != nil {
		t.Fatalf("read the events: %v", err)
	}
	resource.tellToEnd()
	resource.requireEnd(t)
	return outcome{tally: all.tally, stops: stops, value: value}
}

// count reads the counter.
func (c *caller) count(t *testing.T) int {
	t.Helper()
	r, err := c.call(history.Operation{Kind: history.Get})
	if err != nil {
		t.Fatal(err)
	}
	n, err := count(r)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// startResource starts the process of the counter, which listens at address.
func startResource(t *testing.T, config resourceConfig) (p *process, address string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return start(t, roleResource, roleResource, config, nil, f), l.Addr().String()
}

// disturbed stops and continues the children at random until do returns. All of
// them run then.
func disturbed(t *testing.T, children []*process, seed uint64, do func()) (stops int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var helper sync.WaitGroup
	defer helper.Wait()
	defer cancel()
	helper.Go(func() {
		var err error
		if stops, err = disturb(ctx, children, seed); err != nil {
			t.Error(err)
		}
	})
	do()
	cancel()
	helper.Wait()
	return stops
}

// disturb does so in rounds: in each at least half of the children are stopped,
// whatever they are doing, each for a time of its own. One child at least runs
// on, to be granted the lock of one that is stopped. Between the rounds all of
// them run, since a service whose waiters are stopped all the time grants little.
func disturb(ctx context.Context, children []*process, seed uint64) (stops int, err error) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	upTo := func(d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
	half := len(children) / 2
	for err == nil && passes(ctx, upTo(ttl)) {
		ended := make(chan error)
		stopped := rnd.Perm(len(children))[:half+rnd.IntN(half)]
		for _, n := range stopped {
			// Services notice up to half a second late that a lease has run out.
			p, long := children[n], 2*ttl+upTo(ttl)
			go func() { ended <- p.stopFor(ctx, long) }()
		}
		for range stopped {
			err = errors.Join(err, <-ended)
		}
		stops += len(stopped)
	}
	return stops, err
}

// tally is what the clients were told.
type tally struct {
	events       history.Events
	acknowledged int // increments
	refusals     int // of raises and writes
	late         int // writes that were refused
	indefinite   int // results that are neither done nor refused
}

// recording makes the tally while the clients run.
type recording struct {
	mu sync.Mutex
	tally
	open map[int]history.Operation // by client
}

func (r *recording) add(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	if e.Begin {
		r.open[e.Client] = e.Op
		return
	}
	write := r.open[e.Client].Kind == history.Put
	switch {
	case e.Result.Outcome == history.Refused:
		r.refusals++
		if write {
			r.late++
		}
	case e.Result.Outcome != history.Done:
		r.indefinite++
	case write:
		r.acknowledged++
	}
}

// seen is how many clients have made a call.
func (r *recording) seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open)
}

// collect takes the events from the pipe until nobody can write to it.
func (r *recording) collect(out io.Reader) error {
	for lines := json.NewDecoder(out); ; {
		var e history.Event
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r.add(e)
	}
}

// await returns when the time is over and a late write has come: one was
// refused, or an update was lost.
func (r *recording) await(t *testing.T, counter *caller, children []*process, atLeast time.Duration) {
	t.Helper()
	begin := time.Now()
	for passes(t.Context(), 100*time.Millisecond) {
		for _, p := range children {
			if !p.running() {
				t.Fatalf("%s ended by itself: %v", p.name, p.cmd.ProcessState)
			}
		}
		if time.Since(begin) < atLeast {
			continue
		}
		if time.Since(begin) > atLeast+luckless {
			return // and the test says what has not been shown
		}
		// Increments may be added between the two looks: no more than these are lost.
		r.mu.Lock()
		acknowledged, late := r.acknowledged, r.late
		r.mu.Unlock()
		value := counter.count(t)
		if late > 0 || acknowledged > value {
			return
		}
	}
}
