package faults_test

import (
	"context"
	"sync"
	"time"
)

// observer asks the service all the time whether it has the victim's grant.
type observer struct {
	service *service
	lock    string
	stop    context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	holder string
	gone   time.Time     // when the first answer came that it has not
	slow   time.Duration // what the slowest answer took
}

const observeEvery = 3 * time.Millisecond

func observe(s *service, lock string) *observer {
	ctx, cancel := context.WithCancel(context.Background())
	o := &observer{service: s, lock: lock, stop: cancel, done: make(chan struct{})}
	go o.run(ctx)
	return o
}

// of tells whose grant it is about.
func (o *observer) of(holder string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holder == "" {
		o.holder = holder
	}
}

func (o *observer) run(ctx context.Context) {
	defer close(o.done)
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		o.mu.Lock()
		holder := o.holder
		o.mu.Unlock()
		asked := time.Now()
		limited, cancel := context.WithTimeout(ctx, ttl)
		has, err := o.service.has(limited, o.lock, holder)
		at := time.Now()
		cancel()
		o.mu.Lock()
		if err == nil && !has && holder != "" && o.gone.IsZero() {
			o.gone = at
		}
		o.slow = max(o.slow, at.Sub(asked))
		o.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// goneAt is when the grant was first seen to be gone; zero if it was not.
func (o *observer) goneAt() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

// slowest is how long the service took to answer at most.
func (o *observer) slowest() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.slow
}

// end returns when the observer asks no more. It may wait for the service's answer.
func (o *observer) end() {
	o.stop()
	<-o.done
}
