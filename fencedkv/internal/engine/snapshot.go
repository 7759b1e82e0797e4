package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

var (
	headerBucket = []byte("fencedkv")
	headerKey    = []byte("header")
	marksBucket  = []byte("marks")
	dataBucket   = []byte("data")
)

// Snapshot reads one bbolt transaction. All methods may be called concurrently,
// and after its end they return ErrTxDone: memory that bbolt has given back is
// never touched. What they return is a copy.
type Snapshot struct {
	file *boltfile.File
	path string

	mu                  sync.Mutex
	tx                  *bbolt.Tx // nil when it has ended
	header, marks, data *bbolt.Bucket
}

// do runs fn while the transaction is open.
func (s *Snapshot) do(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx == nil {
		return ErrTxDone
	}
	return boltfile.Guard(s.path, fn)
}

// open finds the buckets.
func (s *Snapshot) open() error {
	var missing []string
	find := func(name []byte) *bbolt.Bucket {
		b := s.tx.Bucket(name)
		if b == nil {
			missing = append(missing, strconv.Quote(string(name)))
		}
		return b
	}
	s.header, s.marks, s.data = find(headerBucket), find(marksBucket), find(dataBucket)
	switch len(missing) {
	case 0:
		return nil
	case 3:
		return &boltfile.FormatError{Path: s.path, Detail: "it is a bbolt file, but no store of fencedkv"}
	}
	return &Damage{Path: s.path, Kind: "header", Problem: "bucket " + strings.Join(missing, " and ") + " is missing"}
}

// end closes the transaction and drops what it has written. It may be called
// again, and after commit.
func (s *Snapshot) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := s.tx
	if tx == nil {
		return nil
	}
	s.tx = nil
	return s.file.Rollback(tx)
}

// commit makes durable what was written. It ends the transaction.
func (s *Snapshot) commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := s.tx
	s.tx = nil
	return s.file.Commit(tx)
}

func (s *Snapshot) readHeader() (Header, error) {
	h, err := DecodeHeader(s.header.Get(headerKey))
	switch {
	case errors.Is(err, errFormat):
		err = &boltfile.FormatError{Path: s.path, Detail: err.Error()}
	case err != nil:
		err = &Damage{Path: s.path, Kind: "header", Problem: err.Error()}
	}
	return h, err
}

// Mark returns the mark of resource, the zero Mark if it has none.
func (s *Snapshot) Mark(resource string) (m fence.Mark, err error) {
	err = s.do(func() error {
		m, _, err = s.mark(resource)
		return err
	})
	return m, err
}

// mark returns a mark and its record, which lives as long as the transaction.
func (s *Snapshot) mark(resource string) (fence.Mark, []byte, error) {
	record := s.marks.Get([]byte(resource))
	if record == nil {
		return fence.Mark{}, nil, s.noMark(resource)
	}
	m, err := s.decodeMark(resource, record)
	return m, record, err
}

func (s *Snapshot) decodeMark(resource string, record []byte) (fence.Mark, error) {
	m, err := DecodeMark(resource, record)
	if err != nil {
		return m, s.damagedMark(resource, err.Error())
	}
	return m, nil
}

func (s *Snapshot) damagedMark(resource, problem string) error {
	return &Damage{Path: s.path, Kind: "mark", Resource: resource, Problem: problem}
}

func (s *Snapshot) damagedValue(resource string, key []byte, problem string) error {
	return &Damage{Path: s.path, Kind: "value", Resource: resource, Key: bytes.Clone(key), Problem: problem}
}

// noMark returns nil if it is believable that resource has no mark.
//
// One flipped bit can hide a mark, and the rule would read that as "nothing
// admitted yet". So the records on both sides must be sound and enclose the
// place, the resource must hold no data, and a store without a record must say
// in its header that it has none.
func (s *Snapshot) noMark(resource string) error {
	neighbours, err := s.absent(s.marks, []byte(resource), func(k, v []byte) error {
		_, err := s.decodeMark(string(k), v)
		return err
	})
	if err != nil {
		return err
	}
	h, err := s.readHeader()
	if err != nil {
		return err
	}
	if (h.Marks.Count == 0) != (neighbours == 0) {
		return s.damagedMark(resource, fmt.Sprintf("it is missing, and so are others: the header counts %d marks", h.Marks.Count))
	}
	prefix := appendPrefix(nil, resource)
	if k, _ := s.data.Cursor().Seek(prefix); bytes.HasPrefix(k, prefix) {
		return s.damagedMark(resource, "it is missing, but the resource holds data")
	}
	return nil
}

// absent returns nil if the bucket's records on both sides of key are sound and
// enclose it, and how many there are. A flipped bit can also show a sound record
// in the wrong place, so that the order must hold one record further.
func (s *Snapshot) absent(bucket *bbolt.Bucket, key []byte, sound func(k, v []byte) error) (int, error) {
	c := bucket.Cursor()
	n := 0
	check := func(k, v []byte, further func() ([]byte, []byte), order int) error {
		if k == nil {
			return nil
		}
		n++
		if bytes.Compare(k, key) != order {
			return s.misplaced(bucket, k, "it is out of order")
		}
		if err := sound(k, v); err != nil {
			return err
		}
		if beyond, _ := further(); beyond != nil && bytes.Compare(beyond, k) != order {
			return s.misplaced(bucket, beyond, "it is out of order")
		}
		return nil
	}
	next, v := c.Seek(key)
	if err := check(next, v, c.Next, 1); err != nil {
		return n, err
	}
	var prev []byte
	if next == nil {
		prev, v = c.Last()
	} else {
		c.Seek(key)
		prev, v = c.Prev()
	}
	return n, check(prev, v, c.Prev, -1)
}

func (s *Snapshot) misplaced(bucket *bbolt.Bucket, key []byte, problem string) error {
	if bucket == s.marks {
		return s.damagedMark(string(key), problem)
	}
	resource, k, err := DecodeKey(key)
	if err != nil {
		problem = err.Error()
	}
	return s.damagedValue(resource, k, problem)
}

// Get returns a copy of a value, or ErrNotFound.
func (s *Snapshot) Get(resource string, key []byte) (value []byte, err error) {
	err = s.do(func() error {
		at := EncodeKey(resource, key)
		record := s.data.Get(at)
		if record == nil {
			// As with a mark, a missing record is believed only if its
			// neighbours are sound.
			if _, err := s.absent(s.data, at, s.soundValue); err != nil {
				return err
			}
			return ErrNotFound
		}
		content, err := s.decodeValue(resource, key, record)
		if err != nil {
			return err
		}
		value = append([]byte{}, content...)
		return nil
	})
	return value, err
}

func (s *Snapshot) decodeValue(resource string, key, record []byte) ([]byte, error) {
	content, err := DecodeValue(resource, key, record)
	if err != nil {
		return nil, s.damagedValue(resource, key, err.Error())
	}
	return content, nil
}

func (s *Snapshot) soundValue(k, v []byte) error {
	resource, key, err := DecodeKey(k)
	if err != nil {
		return s.misplaced(s.data, k, "")
	}
	_, err = s.decodeValue(resource, key, v)
	return err
}

// Marked is a resource and its mark.
type Marked struct {
	Resource string
	Mark     fence.Mark
}

// Marks returns up to n resources after the one named, in order of their names.
func (s *Snapshot) Marks(after string, n int) (page []Marked, err error) {
	err = s.do(func() error {
		c := s.marks.Cursor()
		k, v := c.Seek([]byte(after))
		if string(k) == after {
			k, v = c.Next()
		}
		for ; k != nil && len(page) < n; k, v = c.Next() {
			resource := string(k)
			if resource <= after {
				return s.misplaced(s.marks, k, "it is out of order")
			}
			m, err := s.decodeMark(resource, v)
			if err != nil {
				return err
			}
			page = append(page, Marked{resource, m})
			after = resource
		}
		return nil
	})
	return page, err
}
