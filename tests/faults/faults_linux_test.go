package faults_test

import (
	"time"

	"github.com/fencedkv/fencedkv/tests/proxy"
)

// fault is a column of the matrix.
type fault struct {
	name string

	// strike makes the fault, at the moment, and ends it.
	strike func(r *run) error

	// server tells that it is done to the server, so that the service is nobody
	// else's.
	server bool

	// lost tells that it takes the victim's entry away, so that the victim learns of
	// its loss by the next renewal and not before the service may grant again.
	lost bool

	// brief tells that it costs nobody a lock, since it is over long before a lease.
	brief bool
}

// harms reports whether the service can serve nobody else meanwhile.
func (f fault) harms(s *service) bool { return f.server || f.name == counterLost && s.falls }

// The faults, as columns.
const (
	clientStopped = "client stopped"
	clientKilled  = "client killed"
	serverStopped = "server stopped"
	serverKilled  = "server killed"
	droppedUp     = "dropped up"
	droppedDown   = "dropped down"
	droppedBoth   = "dropped both"
	replyLost     = "reply lost"
	delayed       = "delayed"
	entryDeleted  = "entry deleted"
	leaseRevoked  = "lease revoked"
	counterLost   = "counter lost"
	connReset     = "reset"
)

var faults = []fault{
	{name: clientStopped, strike: stopClient},
	{name: clientKilled, strike: killClient},
	{name: serverStopped, strike: stopServer, server: true},
	{name: serverKilled, strike: killServer, server: true},
	{name: droppedUp, strike: drop(proxy.Upstream)},
	{name: droppedDown, strike: drop(proxy.Downstream)},
	{name: droppedBoth, strike: drop(proxy.Both)},
	{name: replyLost, strike: loseReply, brief: true},
	{name: delayed, strike: delay},
	{name: entryDeleted, strike: deleteEntry, lost: true},
	{name: leaseRevoked, strike: revokeLease, lost: true},
	{name: counterLost, strike: loseCounter, lost: true},
	{name: connReset, strike: resetConnection, brief: true},
}

// long is longer than a lease lasts, on any clock here.
const long = ttl + ttl/2

// lasts returns when the fault has lasted for long.
func (r *run) lasts() { <-time.After(time.Until(r.hit.Add(long))) }
