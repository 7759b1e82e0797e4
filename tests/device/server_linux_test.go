package device_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net/rpc"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fencedkv/fencedkv/tests/internal/faultfs"
)

// The kinds of operations that are counted.
const (
	opWrite     = "write"
	opTruncate  = "truncate"
	opFsync     = "fsync"
	opFdatasync = "fdatasync"
	opDirSync   = "sync of the directory"
)

// Fault makes operations fail. The zero Fault is none.
type Fault struct {
	Op      string
	N       int // the first that fails, from 1
	Forever bool
	Errno   syscall.Errno
	Half    bool // the first one writes its first half before it fails
}

// Failure is an operation that failed.
type Failure struct {
	Op    string
	Errno syscall.Errno
	// Meta: the write of a meta page, or the sync of one.
	Meta bool
	// Rest: of a write that the kernel has split. What is before it was written,
	// which the writer is told, who then tries the rest again.
	Rest bool
}

func (f Failure) isSync() bool { return f.Op == opFsync || f.Op == opFdatasync }

// Account is what the file system has seen since Reset.
type Account struct {
	Counts   map[string]int
	Failures []Failure
}

// server is a file system over a device, and the rules for it. Its exported
// methods are called by another process.
type server struct {
	backing  string
	recorder faultfs.Recorder

	mu       sync.Mutex
	disk     faultfs.Disk
	fault    Fault
	lifted   bool
	halved   bool
	account  Account
	metaOpen map[faultfs.Inode]bool // a meta page was written and not synced

	hold    Fault // Op and N: it waits for release
	held    chan struct{}
	release chan struct{}
}

func opOf(c faultfs.Change) string {
	switch c.Kind {
	case faultfs.Wrote:
		return opWrite
	case faultfs.Truncated:
		return opTruncate
	case faultfs.DirSynced:
		return opDirSync
	case faultfs.Synced:
		if c.DataOnly {
			return opFdatasync
		}
		return opFsync
	}
	return ""
}

// Reset forgets everything; the directory must be empty. Then f is in force.
func (s *server) Reset(f Fault, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left, err := os.ReadDir(s.backing); err != nil || len(left) > 0 {
		return errors.Join(err, errors.New("the directory is not empty"))
	}
	s.disk = faultfs.Disk{Durable: faultfs.NewImage()}
	s.fault, s.lifted, s.halved, s.hold = f, false, false, Fault{}
	s.account = Account{Counts: map[string]int{}}
	s.metaOpen = map[faultfs.Inode]bool{}
	return nil
}

// Lift ends the fault.
func (s *server) Lift(struct{}, *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifted = true
	return nil
}

// Account returns what happened so far.
func (s *server) Account(_ struct{}, a *Account) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*a = s.account
	a.Counts = map[string]int{}
	for op, n := range s.account.Counts {
		a.Counts[op] = n
	}
	return nil
}

// Durable writes what a power Failure would leave into a directory.
func (s *server) Durable(dir string, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disk.Durable.Save(dir)
}

// Hold lets the n-th operation from now wait for Release.
func (s *server) Hold(f Fault, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.N += s.account.Counts[f.Op]
	s.hold, s.held, s.release = f, make(chan struct{}), make(chan struct{})
	return nil
}

// Held returns when the operation waits.
func (s *server) Held(struct{}, *struct{}) error {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	select {
	case <-held:
		return nil
	case <-time.After(patience):
		return errors.New("nothing came to be held")
	}
}

// Release lets the operation that waits go on, to fail if errno is not 0.
func (s *server) Release(errno syscall.Errno, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errno != 0 {
		s.fault = Fault{Op: s.hold.Op, N: s.hold.N, Errno: errno}
	}
	close(s.release)
	return nil
}

// wait holds operations back, and lets a device take its time before a sync
// fails, in which others can read.
func (s *server) wait(c faultfs.Change) {
	s.mu.Lock()
	op := opOf(c)
	next := s.account.Counts[op] + 1
	var held bool
	release := s.release
	if held = op != "" && s.hold.Op == op && s.hold.N == next; held {
		close(s.held)
	}
	slow := c.Kind == faultfs.Synced && s.fails(op, next)
	s.mu.Unlock()
	if held {
		select {
		case <-release:
		case <-time.After(patience):
		}
	}
	if slow {
		time.Sleep(3 * time.Millisecond)
	}
}

func (s *server) fails(op string, n int) bool {
	f := s.fault
	return op != "" && f.Op == op && !s.lifted && (n == f.N || n > f.N && f.Forever)
}

func (s *server) decide(c faultfs.Change) faultfs.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := opOf(c)
	if op == "" {
		return faultfs.Fate{}
	}
	meta := c.Kind == faultfs.Wrote && c.Offset < 2*int64(pageSize) && len(c.Data) <= pageSize
	if c.Kind == faultfs.Wrote {
		s.metaOpen[c.File] = s.metaOpen[c.File] || meta
	}
	if s.halved { // the rest of the write that was halved
		s.halved = false
		s.failed(c, op, meta)
		return faultfs.Fate{Errno: s.fault.Errno}
	}
	s.account.Counts[op]++
	n := s.account.Counts[op]
	if !s.fails(op, n) {
		if c.Kind == faultfs.Synced {
			s.metaOpen[c.File] = false
		}
		return faultfs.Fate{}
	}
	if s.fault.Half && n == s.fault.N {
		s.halved = true
		return faultfs.Fate{Half: true}
	}
	s.failed(c, op, meta)
	return faultfs.Fate{Errno: s.fault.Errno}
}

func (s *server) failed(c faultfs.Change, op string, meta bool) {
	meta = meta || c.Kind == faultfs.Synced && s.metaOpen[c.File]
	// The writer writes pages, the first of which begins with its number.
	rest := c.Kind == faultfs.Wrote && c.Offset > 0 && binary.NativeEndian.Uint64(c.Data) != uint64(c.Offset)/uint64(pageSize)
	s.account.Failures = append(s.account.Failures, Failure{op, s.fault.Errno, meta, rest})
}

func (s *server) did(c faultfs.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	none := func() bool { return false } // what was not synced is lost when a sync fails
	s.disk.Add(c, none)
}

var pageSize = os.Getpagesize()

// patience bounds every wait. It is no bound on speed.
const patience = 30 * time.Second

// serve is the process of the file system: it mounts a directory and takes calls
// on standard input until that ends.
func serve() (err error) {
	dir := os.Args[1]
	mount := filepath.Join(dir, "mount")
	s := &server{backing: filepath.Join(dir, "backing")}
	for _, d := range []string{mount, s.backing} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	if err := s.Reset(Fault{}, nil); err != nil {
		return err
	}
	s.recorder.Set(faultfs.Rules{Wait: s.wait, Decide: s.decide, Did: s.did})
	fuse, err := faultfs.Mount(s.backing, mount, &s.recorder)
	if err != nil {
		return err
	}
	defer func() {
		// Detached, it goes when its last user has.
		err = errors.Join(err, syscall.Unmount(mount, syscall.MNT_DETACH))
		fuse.Wait()
	}()
	calls := rpc.NewServer()
	if err := calls.RegisterName("Device", s); err != nil {
		return err
	}
	calls.ServeConn(pipe{os.Stdin, os.Stdout})
	return nil
}

// pipe is a connection.
type pipe struct {
	io.ReadCloser
	to io.WriteCloser
}

func (p pipe) Write(b []byte) (int, error) { return p.to.Write(b) }
func (p pipe) Close() error                { return errors.Join(p.to.Close(), p.ReadCloser.Close()) }
