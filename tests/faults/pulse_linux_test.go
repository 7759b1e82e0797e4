package faults_test

import (
	"sync"
	"time"
)

// pulse measures for how long a process does not run.
type pulse struct {
	mu     sync.Mutex
	last   time.Time
	stalls []stall
	end    chan struct{}
	done   chan struct{}
}

// stall is a time for which it did not run, until end.
type stall struct {
	end time.Time
	d   time.Duration
}

const pulseEvery = 5 * time.Millisecond

func newPulse() *pulse {
	p := &pulse{last: time.Now(), end: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *pulse) run() {
	defer close(p.done)
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.end:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		now := time.Now()
		if d := now.Sub(p.last); d > 2*pulseEvery {
			p.stalls = append(p.stalls, stall{now, d})
		}
		p.last = now
		p.mu.Unlock()
	}
}

// stall is the longest pause since then, one that lasts included.
func (p *pulse) stall(since time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := max(time.Since(p.last), pulseEvery)
	for _, s := range p.stalls {
		if s.end.After(since) {
			longest = max(longest, s.d)
		}
	}
	return longest
}

func (p *pulse) stop() {
	close(p.end)
	<-p.done
}
