package boltfile

import (
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	bolt "go.etcd.io/bbolt"
)

// DefaultTimeout is how long Open waits for another process by default.
const DefaultTimeout = time.Second

// Options of Open. The zero value is usable.
type Options struct {
	// Timeout bounds the wait for another process that has the file open.
	// 0 means DefaultTimeout, a negative one is an error. At least one attempt
	// is made, so a nanosecond means "do not wait".
	Timeout time.Duration

	// Init fills a NEW file, in the first transaction and before anybody else
	// can see the file. If it fails nothing is published. nil leaves the file
	// empty. It is not called for a file that exists.
	Init func(tx *bolt.Tx) error

	// AcceptLostCommit opens a file of which one meta page is invalid, on the
	// transaction of the other one. The last transaction may then be lost, and
	// with it an acknowledged write. Without it such a file is ErrCorrupt.
	AcceptLostCommit bool

	// Logger hears of creation, of an accepted loss and of leftovers removed.
	// nil is silent. Keys and values are never logged.
	Logger hclog.Logger

	// Commit takes the place of bbolt's Tx.Commit. It is where tests make a commit
	// wait or fail. nil is the real thing.
	Commit func(tx *bolt.Tx) error

	ops *fileOps // nil is the real thing
}

func (o *Options) timeout() time.Duration {
	if o.Timeout == 0 {
		return DefaultTimeout
	}
	return o.Timeout
}

func (o *Options) logger() hclog.Logger {
	if o.Logger == nil {
		return hclog.NewNullLogger()
	}
	return o.Logger
}

func (o *Options) commit() func(*bolt.Tx) error {
	if o.Commit == nil {
		return (*bolt.Tx).Commit
	}
	return o.Commit
}

func (o *Options) fileOps() *fileOps {
	if o.ops == nil {
		return &fileOps{}
	}
	return o.ops
}

func (o *Options) check(path string) error {
	if path == "" {
		return fmt.Errorf("fencedkv: open: the path is empty")
	}
	if o.Timeout < 0 {
		return fmt.Errorf("fencedkv: open %s: Options.Timeout is %v; it must not be negative", path, o.Timeout)
	}
	return nil
}
