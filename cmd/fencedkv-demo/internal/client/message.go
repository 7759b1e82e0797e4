package client

import (
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/service"
)

// Config is the first line that the process reads.
type Config struct {
	Client string         `json:"client"` // event.ClientA or event.ClientB
	URL    string         `json:"url"`    // of the resource process
	Secret string         `json:"secret"`
	Lock   service.Config `json:"lock"`
}

// Order is every later line but Go.
type Order struct {
	Act    string `json:"act"`
	Amount int    `json:"amount"` // to withdraw
	Pause  Pause  `json:"pause"`
}

// Pause says what the client does between its last look at the lease and the
// write, the first time.
type Pause string

// The ways to pause.
const (
	PauseNone  Pause = "none"  // write at once
	PauseStop  Pause = "stop"  // wait for Go; the parent stops the process meanwhile
	PauseBlock Pause = "block" // wait for Go and renew no longer, where no process can be stopped
)

// Go lets a client that pauses write.
type Go struct{}

// Report is every line that the process writes: an event, or the end of the
// order.
type Report struct {
	Event   *event.Event `json:"event,omitempty"`
	Done    bool         `json:"done,omitempty"`
	Failure *Failure     `json:"failure,omitempty"`
}

// Failure is why the client could not go on.
type Failure struct {
	Kind service.Kind `json:"kind"`
	Text string       `json:"text"`
}

// Error returns the text.
func (f *Failure) Error() string { return f.Text }
