package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

// Options of Open.
type Options struct {
	Timeout          time.Duration
	AcceptLostCommit bool
	Logger           hclog.Logger // not nil
	Commit           CommitFunc   // see boltfile.Options
	Verify           bool         // a mark is raised by verified claims only
}

// CommitFunc does what bbolt's Tx.Commit does.
type CommitFunc = func(*bbolt.Tx) error

// Engine is an open file. Its methods may be called concurrently, except that
// none may be called once Close has begun.
type Engine struct {
	file   *boltfile.File
	path   string
	id     string
	log    hclog.Logger
	queue  *queue
	ended  chan struct{} // closed when the committer has ended
	marks  markCache
	failed atomic.Pointer[failure]
	verify bool // see Options
}

type failure struct{ cause error }

// Open opens or creates the file.
func Open(path string, o Options) (*Engine, error) {
	file, err := boltfile.Open(path, boltfile.Options{
		Timeout:          o.Timeout,
		Init:             initialize,
		AcceptLostCommit: o.AcceptLostCommit,
		Logger:           o.Logger,
		Commit:           o.Commit,
	})
	if err != nil {
		return nil, err
	}
	e := &Engine{file: file, path: path, log: o.Logger, queue: newQueue(), ended: make(chan struct{}), verify: o.Verify}
	if err := e.load(file.RecoveredLostCommit()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	go e.commits()
	return e, nil
}

// initialize makes a new file a store.
func initialize(tx *bbolt.Tx) error {
	for _, name := range []string{headerBucket, marksBucket, dataBucket} {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return tx.Bucket([]byte(headerBucket)).Put(headerKey, newHeader().Encode())
}

// load checks that the file is a store of this version, and records an accepted
// loss.
func (e *Engine) load(lostCommit bool) error {
	var h Header
	err := e.View(func(s *Snapshot) (err error) {
		if err := s.openAll(); err != nil {
			return err
		}
		if h, err = s.Header(); err != nil {
			return err
		}
		return s.checkAtOpen(h)
	})
	if err != nil || !lostCommit {
		e.id = h.idText()
		return err
	}
	h.LostCommits++
	h.LastLost = time.Now()
	e.id = h.idText()
	s, err := e.begin(true)
	if err != nil {
		return err
	}
	defer func() { _ = s.end() }()
	b := &batch{snap: s, header: h}
	if err := b.putHeader(); err != nil {
		return err
	}
	return s.commit()
}

// Path returns the path given to Open.
func (e *Engine) Path() string { return e.path }

// ID returns the random id that the store was given when it was created.
func (e *Engine) ID() string { return e.id }

// Close waits for queued requests and open snapshots, ends the committer and
// closes the file.
func (e *Engine) Close() error {
	e.queue.close()
	<-e.ended
	return e.file.Close()
}

// View runs fn with a snapshot of the last durable state, see boltfile.State. fn
// may be code of the user: it may panic, or call runtime.Goexit.
func (e *Engine) View(fn func(*Snapshot) error) (err error) {
	s, err := e.begin(false)
	if err != nil {
		return err
	}
	defer func() {
		if ended := s.end(); err == nil {
			err = ended
		}
	}()
	return fn(s)
}

// usable returns the error of a store that has failed.
func (e *Engine) usable() error {
	if f := e.failed.Load(); f != nil {
		return fmt.Errorf("%w: %w", ErrFailed, f.cause)
	}
	return nil
}

func (e *Engine) begin(writable bool) (*Snapshot, error) {
	if err := e.usable(); err != nil {
		return nil, err
	}
	s := &Snapshot{file: e.file, path: e.path}
	if !writable {
		state, err := e.file.Acquire()
		if err != nil {
			return nil, unusable(err)
		}
		s.state, s.id = state, state.ID()
		return s, nil
	}
	tx, err := e.file.Begin(true)
	if err != nil {
		return nil, unusable(err)
	}
	s.tx, s.id = tx, tx.ID()
	if s.root, err = e.file.Base(tx); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// unusable adds ErrFailed to the error of a transaction that did not begin because
// of a commit that failed.
func unusable(err error) error {
	if _, ok := errors.AsType[*boltfile.CommitError](err); ok {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return err
}

// fail refuses all further calls. The first cause is kept.
func (e *Engine) fail(cause error) {
	if e.failed.CompareAndSwap(nil, &failure{cause}) {
		e.log.Error("the store has failed and refuses every call until it is opened anew", "file", e.path, "error", cause)
	}
}
