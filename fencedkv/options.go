package fencedkv

import (
	"time"

	"github.com/hashicorp/go-hclog"

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

	// Hooks hear of commits, raises and refusals.
	Hooks Hooks

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

func (o *Options) acceptLostCommit() bool { return o != nil && o.AcceptLostCommit }
