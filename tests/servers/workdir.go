package servers

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

const (
	dirPrefix  = "fencedkv-server-"
	lockSuffix = ".lock"
)

// workDir is a temporary directory with a lock file beside it, which this
// process holds while it uses the directory. A test binary that is killed
// removes nothing; the next one finds the lock free and does it.
type workDir struct {
	path string
	lock *flock.Flock
}

var sweepOnce sync.Once

func newWorkDir(name string) (workDir, error) {
	sweepOnce.Do(sweep)
	f, err := os.CreateTemp("", dirPrefix+name+"-*"+lockSuffix)
	if err != nil {
		return workDir{}, err
	}
	if err := f.Close(); err != nil {
		return workDir{}, err
	}
	d := workDir{path: strings.TrimSuffix(f.Name(), lockSuffix), lock: flock.New(f.Name())}
	// Another process may sweep the file away before it is locked. Then the
	// directory is an ordinary one that nobody would sweep.
	err = d.lock.Lock()
	if err == nil {
		err = os.Mkdir(d.path, 0o700)
	}
	if err != nil {
		return workDir{}, errors.Join(err, d.remove())
	}
	return d, nil
}

func (d workDir) remove() error {
	// The lock goes last and is open no more when it is removed: Windows
	// removes no open file.
	err := errors.Join(os.RemoveAll(d.path), d.lock.Unlock())
	if e := os.Remove(d.lock.Path()); !errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// sweep removes the directories whose owners have died.
func sweep() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"+lockSuffix))
	for _, name := range left {
		d := workDir{path: strings.TrimSuffix(name, lockSuffix), lock: flock.New(name)}
		if free, err := d.lock.TryLock(); free && err == nil {
			_ = d.remove() // best effort: the next sweep tries again
		}
	}
}
