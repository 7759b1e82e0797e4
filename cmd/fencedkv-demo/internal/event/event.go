// Package event names what happens in the demonstration. The timeline draws
// events and --json prints them, one a line.
package event

import (
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// The names of events. Doc describes them for --help.
const (
	Started      = "started"
	ActStarted   = "act_started"
	Acquiring    = "acquiring"
	Acquired     = "acquired"
	Raised       = "raised"
	Read         = "read"
	LeaseChecked = "lease_checked"
	AboutToWrite = "about_to_write"
	Stopped      = "stopped"
	LeaseExpired = "lease_expired"
	Continued    = "continued"
	Writing      = "writing"
	Written      = "written"
	Rejected     = "rejected"
	LeaseLost    = "lease_lost"
	Released     = "released"
	Retrying     = "retrying"
	ActEnded     = "act_ended"
	SummaryName  = "summary"
)

// Doc describes each event in the order in which they first appear.
var Doc = [][2]string{
	{Started, "the service and the lease time are known to work"},
	{ActStarted, "the account holds balance"},
	{Acquiring, "client asks for the lock, and waits if another has it"},
	{Acquired, "client has the lock; token is its fencing token"},
	{Raised, "client has shut out all older tokens (fenced act only)"},
	{Read, "client has read balance"},
	{LeaseChecked, "client has looked at its lease; valid tells the result"},
	{AboutToWrite, "client knows what to write, and has not sent it"},
	{Stopped, "client's process is stopped; how is SIGSTOP, or blocked"},
	{LeaseExpired, "the service took the lock from the stopped client"},
	{Continued, "client's process goes on where it was"},
	{Writing, "client sends balance, with token in the fenced act"},
	{Written, "the store took the write"},
	{Rejected, "the store refused offered, because it knows highest"},
	{LeaseLost, "client looks at its lease again and finds it gone"},
	{Released, "client gave the lock back"},
	{Retrying, "client starts again with a new lock"},
	{ActEnded, "expected and actual balance, and lost_updates"},
	{SummaryName, "always last: the same for both acts, and shown"},
}

// The two acts.
const (
	Unfenced = "unfenced"
	Fenced   = "fenced"
)

// The two clients.
const (
	ClientA = "A"
	ClientB = "B"
)

// HowSignal is Event.How of a process that was really stopped, HowBlocked that
// of one that only waits.
const (
	HowSignal  = "SIGSTOP"
	HowBlocked = "blocked"
)

// Event is one thing that happened. Which fields are set depends on Name.
type Event struct {
	Name     string      `json:"event"`
	Act      string      `json:"act,omitempty"`
	AtMS     int64       `json:"at_ms"` // milliseconds since the demonstration began
	Client   string      `json:"client,omitempty"`
	Lock     string      `json:"lock,omitempty"` // the service, without passwords
	TTLMS    int64       `json:"ttl_ms,omitempty"`
	Resource string      `json:"resource,omitempty"`
	Token    fence.Token `json:"token,omitzero"`
	Offered  fence.Token `json:"offered,omitzero"`
	Highest  fence.Token `json:"highest,omitzero"`
	Amount   int         `json:"amount,omitempty"` // what client withdraws
	Balance  *int        `json:"balance,omitempty"`
	Valid    *bool       `json:"valid,omitempty"`
	How      string      `json:"how,omitempty"`
	PID      int         `json:"pid,omitempty"`
	Reason   string      `json:"reason,omitempty"`
	*Result
}

// At returns the time since the demonstration began.
func (e Event) At() time.Duration { return time.Duration(e.AtMS) * time.Millisecond }

// Result is how an act ended.
type Result struct {
	Expected    int `json:"expected"`     // what the acknowledged withdrawals leave
	Actual      int `json:"actual"`       // what the store holds
	LostUpdates int `json:"lost_updates"` // acknowledged withdrawals that are missing
}

// PerAct is one number for each act.
type PerAct struct {
	Unfenced int `json:"unfenced"`
	Fenced   int `json:"fenced"`
}

// Summary is the last line.
type Summary struct {
	Name        string `json:"event"`
	AtMS        int64  `json:"at_ms"`
	LostUpdates PerAct `json:"lost_updates"`
	Expected    PerAct `json:"expected"`
	Actual      PerAct `json:"actual"`
	Shown       bool   `json:"shown"` // a loss without fencing, none with it
}

// Sink receives what happens, in order, from one goroutine.
type Sink interface {
	Event(Event) error
	Summary(Summary) error
}
