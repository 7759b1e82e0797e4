package crash_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// flaw is what is wrong with a toy.
type flaw struct {
	noSync       bool // commits do not sync
	lateMark     bool // the mark is written in a later transaction than the data
	noSettle     bool // Open does not write the current meta page again
	rename       bool // creation replaces an existing file
	unsyncedName bool // creation does not sync the directory
}

// toy is the least store on bbolt that keeps the promises, but for its flaw.
type toy struct {
	flaw flaw
	mu   sync.RWMutex // a reader waits for a commit, which it would see too early
	db   *bbolt.DB
}

var bucketMarks, bucketData = []byte("marks"), []byte("data")

// openToy opens the file and creates it if it is missing. between, which may be
// nil, runs between the look and the creation.
func openToy(path string, f flaw, between func() error) (s *toy, err error) {
	defer guard(&err)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if between != nil {
			if err := between(); err != nil {
				return nil, err
			}
		}
		if err := createToy(path, f); err != nil {
			return nil, err
		}
	}
	if !f.noSettle {
		if err := settle(path); err != nil {
			return nil, err
		}
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return nil, err
	}
	db.NoSync = f.noSync
	return &toy{flaw: f, db: db}, nil
}

func createToy(path string, f flaw) error {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "toy-*")
	if err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(temp.Name(), 0o600, nil)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucketMarks)
		if err == nil {
			_, err = tx.CreateBucket(bucketData)
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if f.rename {
		err = os.Rename(temp.Name(), path)
	} else if err = os.Link(temp.Name(), path); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err != nil || f.unsyncedName {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *toy) write(writes ...note) (err error) {
	defer guard(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	admit := func(tx *bbolt.Tx, put bool) error {
		for _, w := range writes {
			highest, err := toyMark(tx, w.resource)
			if err != nil {
				return err
			}
			raise, err := fence.Admit(w.resource, named(w.seq), fence.Mark{Token: highest})
			if err != nil {
				return err
			}
			if raise && put {
				if err := tx.Bucket(bucketMarks).Put([]byte(w.resource), []byte(named(w.seq).String())); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		if err := admit(tx, !s.flaw.lateMark); err != nil {
			return err
		}
		for _, w := range writes {
			if w.key == "-" {
				continue
			}
			if err := tx.Bucket(bucketData).Put([]byte(w.resource+"/"+w.key), []byte(w.content())); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !s.flaw.lateMark {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error { return admit(tx, true) })
}

func toyMark(tx *bbolt.Tx, resource string) (fence.Token, error) {
	text := tx.Bucket(bucketMarks).Get([]byte(resource))
	if text == nil {
		return fence.Token{}, nil
	}
	return fence.Parse(string(text))
}

func (s *toy) get(resource, key string) (text string, err error) {
	defer guard(&err)
	s.mu.RLock()
	defer s.mu.RUnlock()
	err = s.db.View(func(tx *bbolt.Tx) error {
		text = string(tx.Bucket(bucketData).Get([]byte(resource + "/" + key)))
		return nil
	})
	return text, err
}

func (s *toy) highest(resource string) (t fence.Token, err error) {
	defer guard(&err)
	s.mu.RLock()
	defer s.mu.RUnlock()
	err = s.db.View(func(tx *bbolt.Tx) error {
		t, err = toyMark(tx, resource)
		return err
	})
	return t, err
}

func (s *toy) check() error { return nil }

func (s *toy) close() (err error) {
	defer guard(&err)
	return s.db.Close()
}

// guard makes an error of bbolt's panic on a damaged file.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("bbolt: %v", p)
	}
}
