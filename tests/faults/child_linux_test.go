package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// accessVariable makes the test binary a victim. It holds its access.
const accessVariable = "FENCEDKV_FAULTS_VICTIM"

// lookEvery is how often a victim looks at its lease and writes.
const lookEvery = 40 * time.Millisecond

// child is the victim's side of the talk with its parent.
type child struct {
	locker locks.Locker
	pulse  *pulse
	tasks  sync.WaitGroup

	mu     sync.Mutex
	cancel context.CancelFunc // of the acquisition
	lease  *locks.Lease       // the last one
}

// play is the victim's life. It ends with an order or with the parent.
func play(text string) error {
	var a access
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return fmt.Errorf("%s: %w", accessVariable, err)
	}
	locker, err := a.open()
	if err != nil {
		return err
	}
	c := &child{locker: locker, pulse: newPulse(), cancel: func() {}}
	c.tell(event{What: evOpened})
	for orders := json.NewDecoder(os.Stdin); ; {
		var o order
		err := orders.Decode(&o)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch o.Do {
		case doAcquire:
			ctx, cancel := context.WithCancel(context.Background())
			c.mu.Lock()
			c.cancel = cancel
			c.mu.Unlock()
			c.tasks.Go(func() { c.acquire(ctx, o.Lock) })
		case doCancel:
			c.mu.Lock()
			c.cancel()
			c.mu.Unlock()
		case doRelease:
			c.tasks.Go(func() { c.tellErr(event{What: evReleased}, c.last().Release(context.Background())) })
		case doStare:
			c.tasks.Go(func() { c.stare(c.last()) })
		case doWrite:
			if lease := c.last(); lease != nil {
				c.tell(event{What: evWrite, Lock: lease.Name(), Token: lease.Token().String(), Ended: true})
			}
		case doClose:
			c.close()
			return nil
		default:
			return fmt.Errorf("no order %q", o.Do)
		}
	}
}

func (c *child) last() *locks.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lease
}

func (c *child) acquire(ctx context.Context, name string) {
	lease, err := c.locker.Acquire(ctx, name)
	if err != nil {
		c.tellErr(event{What: evAcquired}, err)
		return
	}
	c.mu.Lock()
	c.lease = lease
	c.mu.Unlock()
	ended := lease.Context().Err() != nil
	c.tell(event{What: evAcquired, Token: lease.Token().String(), Deadline: lease.Deadline(), Ended: ended})
	c.tasks.Go(func() { c.work(lease) })
	<-lease.Context().Done()
	at := time.Now()
	c.tellErr(event{What: evEnded, At: at, Token: lease.Token().String(), Deadline: lease.Deadline(), Stall: c.pulse.stall(time.Now().Add(-ttl))},
		context.Cause(lease.Context()))
}

// work looks at the lease and writes, until it has ended.
func (c *child) work(lease *locks.Lease) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	deadline := lease.Deadline()
	for ; ; <-tick.C {
		at := time.Now()
		ended := lease.Context().Err() != nil
		if ended {
			return
		}
		c.tell(event{What: evWrite, Lock: lease.Name(), At: at, Token: lease.Token().String()})
		if d := lease.Deadline(); d.After(deadline) {
			deadline = d
			c.tell(event{What: evRenewed, Token: lease.Token().String(), Deadline: d})
		}
	}
}

// stare looks at the lease without a pause. It looks again the moment the process
// wakes, before the runtime has seen that timers have run out.
func (c *child) stare(lease *locks.Lease) {
	c.tell(event{What: evStares})
	for last := time.Now().Round(0); ; { // the wall clock
		at := time.Now().Round(0)
		ended := lease.Context().Err() != nil
		stopped := at.Sub(last) > ttl || ended && time.Since(last) > ttl // before the look, or in it
		if stopped {
			c.tell(event{What: evWoke, At: at, Token: lease.Token().String(), Ended: ended})
		}
		if stopped || ended {
			return
		}
		last = at
	}
}

// close ends everything and tells which goroutines have not ended with it.
func (c *child) close() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	err := c.locker.Close(ctx)
	stall := c.pulse.stall(time.Now().Add(-ttl))
	c.tasks.Wait()
	c.pulse.stop()
	c.tellErr(event{What: evClosed, Left: leftovers(), Stall: stall}, err)
}

// leftovers are the stacks of all goroutines but this one, when none of them ends
// any more.
func leftovers() string {
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(patience / 3); ; runtime.Gosched() {
		all := string(stacks[:runtime.Stack(stacks, true)])
		_, others, some := strings.Cut(all, "\n\n")
		if !some || time.Now().After(end) {
			return others
		}
	}
}

func (c *child) tellErr(e event, err error) {
	if err != nil {
		e.Err = err.Error()
		e.Held, e.Lost = errors.Is(err, locks.ErrHeld), errors.Is(err, locks.ErrLost)
		e.Away, e.Cancelled = errors.Is(err, locks.ErrUnreachable), errors.Is(err, locks.ErrCancelled)
	}
	c.tell(e)
}

// tell writes a line. If the parent has gone, so does the victim.
func (c *child) tell(e event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	line, err := json.Marshal(e)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, err = os.Stdout.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
