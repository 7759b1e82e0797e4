package device_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// flaw is what is wrong with a toy.
type flaw struct {
	ignoresSync  bool // a sync that failed is taken for done
	repeatsSync  bool // a sync that failed is repeated, and then believed
	goesOn       bool // what failed is taken for not applied, and nothing else happens
	readsAtOnce  bool // readers do not wait for the commit that they see
	noSettle     bool // Open does not write the meta pages again
	nameUnsynced bool // creation does not sync the directory
}

// toy is the least store on bbolt that keeps the promises, but for its flaw. It
// need not tell outcomes apart: of what failed it says that it does not know.
type toy struct {
	flaw
	db     *bbolt.DB
	mu     sync.RWMutex // a reader waits for a commit, which it would see too early
	failed error
}

var bucketMarks, bucketData = []byte("marks"), []byte("data")

func (f flaw) open(path string) (_ subject, err error) {
	defer guard(&err)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := f.create(path); err != nil {
			return nil, err
		}
	}
	if err := f.settle(path); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{InitialMmapSize: 64 << 20})
	if err != nil {
		return nil, err
	}
	return &toy{flaw: f, db: db}, nil
}

func (f flaw) create(path string) error {
	temp := path + ".new"
	os.Remove(temp)
	db, err := bbolt.Open(temp, 0o600, nil)
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
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return f.syncName(path)
}

// settle makes what can be read of the meta pages durable, and the name.
func (f flaw) settle(path string) error {
	if f.noSettle {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	meta := make([]byte, pageSize)
	for at := range int64(2) {
		if _, err := file.ReadAt(meta, at*int64(pageSize)); err != nil {
			return err
		}
		if _, err := file.WriteAt(meta, at*int64(pageSize)); err != nil {
			return err
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return f.syncName(path)
}

func (f flaw) syncName(path string) error {
	if f.nameUnsynced {
		return nil
	}
	dir, err := os.Open(path[:len(path)-len("/store.db")])
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func (s *toy) do(st step) (err error) {
	defer guard(&err)
	if !s.readsAtOnce {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	if s.failed != nil {
		return s.failed
	}
	committing, id := false, 0
	err = s.db.Update(func(tx *bbolt.Tx) error {
		id = tx.ID()
		if err := toyWrite(tx, st); err != nil {
			return err
		}
		committing = true
		return nil
	})
	if err == nil || !committing || s.goesOn {
		return err
	}
	write := (*fs.PathError)(nil)
	if s.ignoresSync && !errors.As(err, &write) {
		return nil
	}
	if s.repeatsSync && s.visible() >= id && s.db.Sync() == nil {
		return nil
	}
	s.failed = fmt.Errorf("%w: %w", fencedkv.ErrFailed, err)
	return fmt.Errorf("%w: %w", fencedkv.ErrUnknownOutcome, err)
}

// visible is the transaction that a reader would see.
func (s *toy) visible() (id int) {
	_ = s.db.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil })
	return id
}

func toyWrite(tx *bbolt.Tx, st step) error {
	for _, c := range st.claims {
		highest, err := toyMark(tx, c.resource)
		if err != nil {
			return err
		}
		raised, err := fence.Admit(c.resource, c.token(), fence.Mark{Token: highest})
		if err == nil && raised {
			err = tx.Bucket(bucketMarks).Put([]byte(c.resource), []byte(c.token().String()))
		}
		if err != nil {
			return err
		}
	}
	data := tx.Bucket(bucketData)
	for _, w := range st.writes {
		key := []byte(w.resource + "/" + w.key)
		err := data.Delete(key)
		if !w.remove {
			err = data.Put(key, []byte(w.value))
		}
		if err != nil {
			return err
		}
	}
	if st.want == ownError {
		return errOwn
	}
	return nil
}

func toyMark(tx *bbolt.Tx, resource string) (fence.Token, error) {
	text := tx.Bucket(bucketMarks).Get([]byte(resource))
	if text == nil {
		return fence.Token{}, nil
	}
	return fence.Parse(string(text))
}

func (s *toy) read(resource, end string) (c content, err error) {
	defer guard(&err)
	if !s.readsAtOnce {
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.failed != nil && !s.goesOn {
			return c, s.failed
		}
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		mark, err := toyMark(tx, resource)
		c = content{mark.Seq, mark.Holder, map[string]string{}}
		prefix := []byte(resource + "/")
		cursor := tx.Bucket(bucketData).Cursor()
		for k, v := cursor.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = cursor.Next() {
			key := string(k[len(prefix):])
			if end != "" && key >= end {
				break
			}
			c.values[key] = string(v)
		}
		return err
	})
	return c, err
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
