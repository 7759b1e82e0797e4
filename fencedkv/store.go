package fencedkv

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// Store is an open store. Its methods may be called concurrently. A file is open
// in one Store at a time, of all processes: share it.
type Store struct {
	engine   *engine.Engine
	refusals *refusalLog
	running  running
	hooks    Hooks
	verify   *verification // nil if verification is off

	// calls is held for reading by every call and for writing by Close.
	calls     sync.RWMutex
	closeOnce sync.Once
	closeErr  error
}

// Open opens the store at path and creates it, with mode 0600, if there is no
// file. A directory is not created. Creation is atomic: of several processes
// that create one path at the same time one wins and the others wait for it.
//
// Its errors are over ErrInUse, ErrCorrupt, ErrFormat, ErrArgument, or those of
// the operating system.
func Open(path string, o *Options) (*Store, error) { return open(path, o, nil) }

// open is Open with another commit than bbolt's, for tests; nil is bbolt's.
func open(path string, o *Options, commit engine.CommitFunc) (*Store, error) {
	if path == "" {
		return nil, &ArgumentError{Argument: "path", Problem: "is empty"}
	}
	if o.timeout() < 0 {
		return nil, &ArgumentError{Argument: "Options.Timeout", Problem: fmt.Sprintf("is %v; it must not be negative", o.Timeout)}
	}
	if slices.ContainsFunc(o.verifiers(), func(v fence.Verifier) bool { return isNil(v) }) {
		return nil, &ArgumentError{Argument: "Options.Verifiers", Problem: "have a nil one; leave it out"}
	}
	e, err := engine.Open(path, engine.Options{
		Timeout:          o.timeout(),
		AcceptLostCommit: o.acceptLostCommit(),
		Logger:           o.logger(),
		Commit:           commit,
		Verify:           len(o.verifiers()) > 0,
	})
	if err != nil {
		return nil, public(err)
	}
	s := &Store{engine: e, refusals: newRefusalLog(o.logger()), hooks: o.hooks()}
	if len(o.verifiers()) > 0 {
		s.verify = newVerification(s, o.verifiers())
	}
	return s, nil
}

// Close waits for the calls that run, refuses later ones with ErrClosed and
// closes the file. Those that wait for a verifier are not waited for: they have
// written nothing and return ErrClosed. Calling it again waits for the same end and returns the same
// error. Called by a function that the store runs it closes nothing and returns
// ErrNested.
func (s *Store) Close() error {
	if s == nil || s.engine == nil {
		return errNotOpen
	}
	if s.running.here() {
		return fmt.Errorf("%w: close", ErrNested)
	}
	s.closeOnce.Do(func() {
		s.verify.stop()
		// Never unlocked: a call that comes now or later finds it taken.
		s.calls.Lock()
		s.verify.wait()
		s.closeErr = public(s.engine.Close())
	})
	return s.closeErr
}

// Path returns the path given to Open.
func (s *Store) Path() string {
	if s == nil || s.engine == nil {
		return ""
	}
	return s.engine.Path()
}

// ID returns the random id, in hexadecimal, that the store was given when it was
// created. A copy of the file has the same one.
func (s *Store) ID() string {
	if s == nil || s.engine == nil {
		return ""
	}
	return s.engine.ID()
}

// Resource returns the resource of that name, which need not exist: the first
// token that is admitted creates it. It does no I/O. A name of 0 or more than
// MaxResource bytes makes every use of the Resource an error.
func (s *Store) Resource(name string) *Resource { return &Resource{store: s, name: name} }

// Check reads the whole store and returns a *CorruptError for the first thing
// that cannot be right: a record with a wrong checksum or out of order, a value
// without a mark, marks or values that are not, in number and digest, those that
// were written last, or a page that is in use twice, or in use and free. It works
// on a snapshot: reads and writes go on beside it.
func (s *Store) Check(ctx context.Context) error {
	return s.view(ctx, func(snap *engine.Snapshot) error { return snap.Check(ctx) })
}

// enter begins a call; leave ends it.
func (s *Store) enter(ctx context.Context) error {
	switch {
	case s == nil || s.engine == nil:
		return errNotOpen
	case ctx == nil:
		return errNilContext
	case s.nested(ctx), s.running.functions.here(): // whatever context it passes
		return ErrNested
	case ctx.Err() != nil:
		return fmt.Errorf("fencedkv: nothing done: %w", engine.Ended(ctx))
	case !s.calls.TryRLock(): // fails only once Close holds or awaits the lock
		return s.closed()
	}
	return nil
}

func (s *Store) closed() error { return fmt.Errorf("%w: %s", ErrClosed, s.Path()) }

func (s *Store) leave() { s.calls.RUnlock() }

// view runs a read that is no function of the caller.
func (s *Store) view(ctx context.Context, fn func(*engine.Snapshot) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return public(s.engine.View(fn))
}

// beginWrite begins a call that writes; leave ends it. A refusal that durable
// marks decide is found here, before anything is encoded or queued.
func (s *Store) beginWrite(ctx context.Context, claims ...engine.Claim) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	// The transaction of a hook is over, and it may read.
	if s.running.hooks.here() {
		s.leave()
		return ErrNested
	}
	if err := s.engine.Refused(claims...); err != nil {
		defer s.leave()
		s.refusal(err)
		return public(err)
	}
	return nil
}

// do decides and applies a transaction. fn, which may be nil, is a function of
// the caller that makes its writes. The call was begun with beginWrite.
func (s *Store) do(ctx context.Context, tx *engine.Tx, fn func(context.Context, *engine.Tx) error) error {
	var run func(*engine.Tx) error
	if fn != nil {
		run = func(tx *engine.Tx) error {
			return s.within(ctx, func(ctx context.Context) error { return fn(ctx, tx) })
		}
	}
	report, err := s.decide(ctx, tx, run)
	s.hear(report)
	if own, ok := err.(*engine.FuncError); ok { //nolint:errorlint // one that the function itself wrapped is its own
		return own.Err
	}
	s.refusal(err)
	return public(err)
}
