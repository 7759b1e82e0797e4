package fencedkv

import (
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// Hooks are functions that hear what a store does; each may be nil. A hook runs
// after its transaction, on the goroutine of a call that took part in it and
// before that call returns, so that a slow hook delays that call and nobody
// else. Hooks run concurrently with each other. They must not write to the store
// or close it, which is ErrNested.
type Hooks struct {
	Commit  func(CommitInfo)  // a commit is durable
	Raise   func(RaiseInfo)   // a raised mark is durable
	Refusal func(RefusalInfo) // a token was refused

	// Verification: the verifiers were asked about a token and have answered. One
	// of the calls that waited for it runs the hook, before it goes on.
	Verification func(VerificationInfo)
}

// CommitInfo is a commit that is durable.
type CommitInfo struct {
	Latency  time.Duration // of writing and syncing
	Requests int           // that it decided, refusals and functions that failed among them
	Bytes    int           // of keys, names of resources and values, and 64 for each; not what the file took
}

func (i CommitInfo) String() string {
	return fmt.Sprintf("commit of %d requests, %d bytes, in %v", i.Requests, i.Bytes, i.Latency)
}

// RaiseInfo is a mark that was raised.
type RaiseInfo struct {
	Resource string
	Mark     fence.Mark
}

func (i RaiseInfo) String() string {
	return fmt.Sprintf("resource %q raised to %v", i.Resource, i.Mark)
}

// RefusalInfo is a token that was refused.
type RefusalInfo struct{ Err *fence.RejectedError }

func (i RefusalInfo) String() string { return i.Err.Error() }

// VerificationInfo is a question to the verifiers, which any number of calls may
// have waited for.
type VerificationInfo struct {
	Resource string
	Token    fence.Token
	Latency  time.Duration
	Err      error // nil if the token was confirmed, else a *fence.UnverifiedError
}

func (i VerificationInfo) String() string {
	outcome := "confirmed"
	if i.Err != nil {
		outcome = i.Err.Error()
	}
	return fmt.Sprintf("resource %q, token %v, asked for %v: %s", i.Resource, i.Token, i.Latency, outcome)
}

// hear calls the hooks about what the engine reports.
func (s *Store) hear(report engine.Report) {
	h := s.hooks
	if h.Commit != nil && report.Commit.Requests > 0 {
		s.hook(func() { h.Commit(CommitInfo(report.Commit)) })
	}
	if h.Raise != nil {
		for m := range report.Raised.All {
			s.hook(func() { h.Raise(RaiseInfo(m)) })
		}
	}
}

// refusal tells the log and the hook of err, if it is a refusal.
func (s *Store) refusal(err error) {
	s.refusals.log(err)
	if e, ok := err.(*fence.RejectedError); ok && s.hooks.Refusal != nil { //nolint:errorlint // as the engine returns it
		s.hook(func() { s.hooks.Refusal(RefusalInfo{e}) })
	}
}

// hook runs code of the user that must not write or close.
func (s *Store) hook(fn func()) {
	_ = s.running.hooks.run(func() error { fn(); return nil })
}
