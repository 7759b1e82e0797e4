package faults_test

import "time"

// order is what the parent tells the victim to do.
type order struct {
	Do   string
	Lock string // with doAcquire
}

const (
	doAcquire = "acquire" // the lock, and write with its token as long as the lease lasts
	doCancel  = "cancel"  // the acquisition
	doRelease = "release" // the lease
	doStare   = "stare"   // at the lease without a pause, until it was stopped
	doWrite   = "write"   // with the last token, whatever the lease says
	doClose   = "close"   // the Locker, and end
)

// event is what the victim tells the parent.
type event struct {
	What string
	At   time.Time // for evWrite, just before it looked at the lease

	Lock     string    `json:",omitempty"` // with evWrite
	Token    string    `json:",omitempty"`
	Deadline time.Time `json:",omitzero"` // of the lease, as it is now
	Ended    bool      `json:",omitempty"`

	Err                         string `json:",omitempty"`
	Held, Lost, Away, Cancelled bool   `json:",omitempty"` // what kind of error it is

	// Stall is the longest time lately for which the process did not run.
	Stall time.Duration `json:",omitempty"`
	Left  string        `json:",omitempty"` // the stacks of goroutines that have not ended
}

const (
	evOpened   = "opened"
	evAcquired = "acquired" // or not: Err
	evRenewed  = "renewed"  // the deadline has moved
	evStares   = "stares"
	evWoke     = "woke"  // it was stopped for longer than a lease lasts, and has looked now
	evWrite    = "write" // it wants to
	evEnded    = "ended" // the lease's context
	evReleased = "released"
	evClosed   = "closed"
)
