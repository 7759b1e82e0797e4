package faults_test

import (
	"sync"
	"time"
)

// pulse measures for how long a process does not run.
type pulse struct {
	mu    sync.Mutex
	beats []time.Time
	end   chan struct{}
	done  chan struct{}
}

const (
	pulseEvery = 5 * time.Millisecond
	pulseKept  = 600 // three seconds
)

func newPulse() *pulse {
	p := &pulse{beats: []time.Time{time.Now()}, end: make(chan struct{}), done: make(chan struct{})}
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
		p.beats = append(p.beats[max(0, len(p.beats)-pulseKept):], time.Now())
		p.mu.Unlock()
	}
}

// stall is the longest pause lately, one that lasts included.
func (p *pulse) stall() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := time.Since(p.beats[len(p.beats)-1])
	for i, beat := range p.beats[1:] {
		longest = max(longest, beat.Sub(p.beats[i]))
	}
	return longest
}

func (p *pulse) stop() {
	close(p.end)
	<-p.done
}
