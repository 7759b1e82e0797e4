package fencedkv

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// Options of Open. A nil *Options and the zero value are the defaults.
type Options struct {
	// Timeout is how long Open waits for another process that has the file
	// open, before it returns ErrInUse. 0 means one second. It must not be
	// negative; a nanosecond means one attempt.
	Timeout time.Duration

	// Logger hears of refusals (one line each, at most a few per second), of an
	// accepted loss and of a failed store. Keys and values are never logged. nil
	// is silent.
	Logger hclog.Logger

	// Hooks hear of commits, raises, refusals and verifications.
	Hooks Hooks

	// Verifiers, if there are any, turn verification on: a token that would raise
	// a mark is admitted only if the lock service confirms that it is the current
	// grant of the lock that is named like the resource. A write that does not
	// raise the mark asks nobody. Every Locker of this project is a Verifier, and
	// several are told apart by the lineage of the token: one that none of them
	// knows is refused, and so is a bare number. A refusal is a
	// *fence.RejectedError over *fence.UnverifiedError, which tells why.
	//
	// One question is asked for a resource and a token, however many calls wait
	// for it. It ends when their contexts have ended, so give them a deadline that
	// suits the service. A mark that was raised before stays.
	Verifiers []fence.Verifier

	// AcceptLostCommit opens a file one of whose two meta pages is damaged, on
	// the state that the other one describes. The last commit may then be lost,
	// a raised mark among it, and a stale writer that was shut out may be let in
	// again. Without it such a file is ErrCorrupt. Use it after a look at the
	// file, not as a habit; what was accepted is counted in the file.
	AcceptLostCommit bool
}

func (o *Options) timeout() time.Duration {
	if o == nil || o.Timeout == 0 {
		return boltfile.DefaultTimeout
	}
	return o.Timeout
}

func (o *Options) logger() hclog.Logger {
	if o == nil || o.Logger == nil {
		return hclog.NewNullLogger()
	}
	return o.Logger
}

func (o *Options) hooks() Hooks {
	if o == nil {
		return Hooks{}
	}
	return o.Hooks
}

func (o *Options) verifiers() []fence.Verifier {
	if o == nil {
		return nil
	}
	return o.Verifiers
}

func (o *Options) acceptLostCommit() bool { return o != nil && o.AcceptLostCommit }
